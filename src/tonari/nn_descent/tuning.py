"""Tuned numbers of NN-Descent, which affect the time of a run and its lists, but not the recall that it reaches.

In the other packages, tuned numbers affect no answer. Here each run measures its recall, and ends when it reaches the
target. Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune nn_descent``), if
there is one; brackets contain the values that were tried.
"""

from tonari.core.units import MIB

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: two cores of an EPYC of family 26.
# The size of clusters in a start on the CPU, and the training of their centres.
CLUSTER = 128  # mean points per cluster [64, 128, 256]
MOST_CLUSTERS = 8192  # maximum default number of clusters, because every point is compared with all centres
MEMBERS_MET = 8192  # number of members of near clusters with which a point is compared [4096, 8192, 16384]
BLOCK = 256  # rows per task of a round [128, 256, 512]
TRAINED = 16  # points per cluster in the k-means sample [8, 16, 32]
KMEANS_ITERS = 1  # k-means iterations [1, 2]

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: an unrecorded machine.
# The candidates of a round: with 16 + 16 hubs, 15 or 31 entries per hub make just under 512 or 1024 candidates, which a
# CUDA device sorts at once.
HUBS = 16  # number of neighbours whose lists a point reads in a round [8, 16, 24]
REVERSE = 16  # number of reverse neighbours whose lists a point reads in a round [8, 16, 24]
NEIGHBORS_PER_HUB = 31  # number of entries that a point reads from each hub's list [15, 31, 47]
WIDTH = 384  # maximum number of points, not in its list yet, with which a point is compared in a round [192, 384, 768]

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: an unrecorded machine.
# Blocks and tasks of a start on the CPU, and the precision of its scores.
NEAR_CLUSTERS = 8  # number of near clusters found for each point [4, 8, 16]
POINT_BLOCK = 32  # maximum points per block; all points of a block are compared with the same clusters [16, 32, 64]
LARGEST_CLUSTER = 4  # a cluster larger than this multiple of the mean size is cut into pieces
MOST_MEMBERS = 2  # maximum number of members compared with a block, in units of `n_probe` mean cluster sizes [1, 2, 4]
NEAR_TARGET = 0.8  # expected share of the missing neighbours that are still missing after a light round [0.7, 0.8, 0.9]
TASK_BLOCKS = 8  # blocks per task [4, 8, 16]
TASK_QUERIES = 256  # rows per task of comparisons with centres [128, 256, 512]
PACKED_CENTRES = 512  # number of centres that are packed in one step [256, 512, 1024]
COARSE_ENOUGH = 0.95  # coarse scores are used if they find this share of the points nearest by fine scores
LOOKS = 4  # number of tests of coarse scores of points; each test is among the members of the clusters near one point
LOOK_QUERIES = 64  # number of queries in each test
LOOK_POINTS = 2048  # number of points in each test
LOOK_CENTRES = 256  # number of queries in the test of coarse scores of centres; the queries are centres, too
LOOK_NEAR = 4  # number of nearest centres, per tested centre, that coarse scores should find

# Case: nn_descent sift-100k, curve-gaussian, curve-gist on cpu. Chosen on: two cores of a Xeon with AMX, 2026-11-28.
# The number of clusters that a start compares with each point is chosen by the blocks of a few points whose true
# neighbours are known.
START_MISSES = 1.0  # share of neighbours that a start may miss, divided by 1 - recall [1, 1.2, 2]
PILOT_BLOCKS = 64  # number of blocks of points for which several numbers of clusters are tried
FEWER_PROBES = 8  # the number of clusters that is tried first is the plan's n_probe divided by this
TRUSTED_STEP = 1.5  # the chosen number of clusters is at most this multiple of the last number tried
# The number of clusters is not doubled again if the last doubling left more than the first share of the misses, and
# they are less than the second share of all true neighbours: more clusters would hardly find more.
LEVEL = 0.85, 0.25
MOST_RANKED = 1024  # maximum number of nearest clusters that are found for each cluster
# A round makes no lists for another one if the recall is reached when the round leaves this share of the missing
# neighbours. If more are left, the round is repeated.
LEFT_BY_ROUND = 0.45  # [0.4, 0.45, 0.6, 0.8]
# A start compares contracted rows if they rank nearly all true neighbours of a few rows within the length of a list.
SHORT_COLUMNS = (32, 48, 64, 96, 128)
SHORT_SHARE = 6  # minimum ratio of the number of columns before contraction to the number after it
# Share of true neighbours that contracted rows may rank beyond a list, divided by 1 - recall [0.55, 0.7].
SHORT_MISSES = 0.55
SHORT_ROWS = 8192  # number of sampled rows among which contracted rows rank the true neighbours
SHORT_PAIRS = 1024  # minimum number of true neighbours that are ranked
READ_SHORT = 576  # minimum number of columns at which contracted rows are expected to halve the time of a graph
SHORT_TASK = 2048  # number of rows that one task contracts

# Not measured: bounds of memory and of the time between two checks for Ctrl-C.
TRANSFORMED_VALUES = 1 << 20  # number of values (rows x columns) that are transformed in one step
SCALE_ROWS = 8_192  # number of sampled rows that determine the centre and the scale of float64 points
TERM_ROWS = 1 << 14  # number of points whose terms a task computes

# Case: nn_descent curve-gaussian on cpu. Chosen on: an unrecorded machine.
# The run has stalled if each of the last STILL_ROUNDS rounds changed less than the share STILL of all neighbours or, in
# a merge, of the neighbours of the smaller side.
STILL = 1e-3
STILL_ROUNDS = 2

# Case: nn_descent curve-gaussian on cpu. Chosen on: an unrecorded machine.
# The number of rounds, and with it the time, doubles with every DOUBLING_DIMENSIONS above EASY_DIMENSIONS: 100,000
# Gaussian points of 8 to 32 dimensions took 1, 2, 4 and 8 rounds at intrinsic dimensions of about 8, 12, 15 and 17.5.
EASY_DIMENSIONS = 12.0
DOUBLING_DIMENSIONS = 2.7

# Not measured.
SAMPLE = 1000  # minimum rows of a sample that measures the recall, on the CPU
SAMPLE_ON_CUDA = 4000  # minimum rows of a sample that measures the recall, on CUDA
SAMPLE_OF_JOIN = 2000  # minimum rows of a sample that measures the recall, on CUDA after a start from lists of graphs
SAMPLED_MISSES = 10.0  # minimum of (sampled rows) x (1 - recall): a recall by few missed neighbours is inexact
ROW_SECONDS = 4e-5  # seconds per row on one thread, for a few hundred rows; limits the default number of threads
LEAST_SLAB = 1 << 15  # minimum points per slab in the search for true neighbours; smaller slabs have much overhead
LEAST_TRUTH_BYTES = 256 * MIB  # minimum memory of the search for true neighbours; with less, it would be very slow

# Case: nn_descent sift-1m on cuda. Chosen on: an unrecorded machine.
# Defaults on CUDA that differ from the defaults on the CPU.
CLUSTER_ON_CUDA = 256  # mean points per cluster [128, 256, 512]
LEAST_BLOCK_ON_CUDA = 1 << 13  # minimum rows per block; fewer would leave the device idle [1 << 12, 1 << 13, 1 << 14]
MOST_BLOCK_ON_CUDA = 1 << 16  # maximum rows per block; larger blocks are no faster [1 << 15, 1 << 16, 1 << 17]
NEIGHBORS_PER_HUB_FEW = 15  # NEIGHBORS_PER_HUB for k <= 10 [11, 15, 31]
WIDTH_FEW = 192  # WIDTH for k <= 10 [128, 192, 384]
TRAINED_ON_CUDA = 48  # points per cluster in the k-means sample [24, 48, 96]
KMEANS_ITERS_ON_CUDA = 4  # k-means iterations [2, 4, 8]
BLOCKS_ON_CUDA = 80  # number of blocks of a round, within the limits on their rows; a block takes little memory

# Case: nn_descent sift-1m on cuda. Chosen on: an unrecorded machine.
# Blocks and tiles of a start on CUDA, and of sorting for reverse lists.
SCORES_OF_A_PAIR = 16  # minimum number of members kept per pair of a point and a near cluster [8, 16, 32]
USUAL_PROBES = 16  # with this many near clusters per point, blocks of a start and of a round have equally many points
LEAST_SORTED_ON_CUDA = 1 << 20  # minimum list entries that are sorted in one step; by default, two per point are
MOST_SORTED_ON_CUDA = 1 << 22  # maximum number of list entries that are sorted in one step, but at least one per point
RANGES = 1 << 8  # maximum number of chunks of rows; the range of columns is found for each chunk separately
RANGE_ROWS = 32  # minimum number of rows in a chunk, whose range of columns one program finds
MEANS_COLUMNS = 64  # number of columns whose cluster means are computed in one step
SCAN_QUERIES = 64  # points per tile when points are compared with the members of near clusters
SCAN_MEMBERS = 64  # members per tile
SCAN_WARPS = 4  # warps of scan_kernel: no row is split between warps, so its minimum needs no synchronization
LARGE_CLUSTER = 4  # maximum number of members of a cluster that are compared, as a multiple of the mean cluster size
NEAR_STEP = 64  # number of columns that near_kernel loads in one step, for rows longer than SHORT
NEAR_WARPS = 4
FORM_WARPS = 4
REVERSE_BLOCK = 1024  # list entries per program that makes reverse lists
