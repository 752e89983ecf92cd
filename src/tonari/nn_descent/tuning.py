"""Tuned numbers of NN-Descent, which affect the time of a run and its lists, but not the recall that it reaches.

In the other packages, tuned numbers affect no answer. Here each run measures its recall, and ends when it reaches the
target. Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune nn_descent``), if
there is one; brackets contain the values that were tried.
"""

from tonari.core.units import MIB

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: two cores of an EPYC of family 26.
# The size of clusters in a start on the CPU, and the training of their centres.
CLUSTER = 128  # mean points per cluster [64, 128, 256]
MOST_CLUSTERS = 8192  # upper limit, because every point is compared with all centres
MEMBERS_MET = 8192  # members of near clusters that a point is compared with [4096, 8192, 16384]
BLOCK = 256  # rows per task [128, 256, 512]
TRAINED = 16  # training points of k-means per cluster [8, 16, 32]
KMEANS_ITERS = 1  # [1, 2]

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: not recorded.
# The candidates of a round: with 16 + 16 hubs, 15 or 31 entries per hub make just under 512 or 1024 candidates, which a
# CUDA device sorts at once.
HUBS = 16  # a point's neighbours whose lists it reads in a round [8, 16, 24]
REVERSE = 16  # a point's reverse neighbours whose lists it reads in a round [8, 16, 24]
NEIGHBORS_PER_HUB = 31  # entries that a point reads from each of these lists [15, 31, 47]
WIDTH = 384  # most points not in its list that a point is compared with in a round [192, 384, 768]

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: not recorded.
# Blocks and tasks of a start on the CPU, and the precision of its scores.
NEAR_CLUSTERS = 8  # near clusters found for each point [4, 8, 16]
POINT_BLOCK = 32  # points compared together [16, 32, 64]
LARGEST_CLUSTER = 4  # clusters larger than this multiple of the mean are cut into pieces
MOST_MEMBERS = 2  # most members that a block is compared with, relative to `n_probe` average clusters [1, 2, 4]
NEAR_TARGET = 0.8  # a light round is assumed to leave this share of the missing neighbours [0.7, 0.8, 0.9]
TASK_BLOCKS = 8  # blocks per task [4, 8, 16]
TASK_QUERIES = 256  # rows per task of comparisons with centres [128, 256, 512]
PACKED_CENTRES = 512  # centres that are packed at once [256, 512, 1024]
COARSE_ENOUGH = 0.95  # share of the nearest by fine scores that coarse scores must find to suffice
LOOKS = 4  # clusters in the sample that decides whether coarse scores suffice for points
LOOK_QUERIES = 64  # queries from each of these clusters
LOOK_POINTS = 2048  # points from each of these clusters
LOOK_CENTRES = 256  # centres in the sample that decides whether coarse scores suffice for centres
LOOK_NEAR = 4  # near centres of each of these centres

# Case: nn_descent sift-100k, curve-gaussian, curve-gist on cpu. Chosen on: two cores of a Xeon with AMX, 2026-11-28.
# The number of clusters that a start compares with each point is chosen by the blocks of a few points whose true
# neighbours are known.
START_MISSES = 1.0  # share of neighbours that a start may miss, divided by 1 - recall [1, 1.2, 2]
PILOT_BLOCKS = 64  # blocks that are compared with more and more clusters
FEWER_PROBES = 8  # the first number of clusters is the usual number divided by this
TRUSTED_STEP = 1.5  # largest factor by which the number of clusters is extrapolated
# Clusters are not doubled again if twice as many still miss this share of the former misses, and less than the second
# share of all neighbours: the remaining misses have other reasons.
LEVEL = 0.85, 0.25
MOST_RANKED = 1024  # most nearest clusters that are found for each cluster
# A round makes no lists for another one if the recall is reached when the round leaves this share of the missing
# neighbours. If more are left, the round is repeated.
LEFT_BY_ROUND = 0.45  # [0.4, 0.45, 0.6, 0.8]
# A start compares contracted rows if they rank nearly all true neighbours of a few rows within the length of a list.
SHORT_COLUMNS = (32, 48, 64, 96, 128)
SHORT_SHARE = 6  # least ratio of all columns to contracted columns
SHORT_MISSES = 0.55  # share of true neighbours that contracted rows may rank lower, divided by 1 - recall [0.55, 0.7]
SHORT_ROWS = 8192  # sampled rows among which true neighbours are ranked
SHORT_PAIRS = 1024  # number of true neighbours that are ranked
READ_SHORT = 576  # columns from which contracted rows are expected to halve the time of a graph
SHORT_TASK = 2048  # rows that a task contracts

# Not measured: bounds of memory and of the time between two checks for Ctrl-C.
TRANSFORMED_VALUES = 1 << 20  # values of rows that are transformed in one step
SCALE_ROWS = 8_192  # sampled rows that determine the centre and the scale of float64 points
TERM_ROWS = 1 << 14  # rows per task that computes terms of points

# Case: nn_descent curve-gaussian on cpu. Chosen on: not recorded.
# The run has stalled if each of the last STILL_ROUNDS rounds changed less than the share STILL of all neighbours or, in
# a merge, of the neighbours of the smaller side.
STILL = 1e-3
STILL_ROUNDS = 2

# Case: nn_descent curve-gaussian on cpu. Chosen on: not recorded.
# The number of rounds, and with it the time, doubles with every DOUBLING_DIMENSIONS above EASY_DIMENSIONS: 100,000
# Gaussian points of 8 to 32 dimensions took 1, 2, 4 and 8 rounds at intrinsic dimensions of about 8, 12, 15 and 17.5.
EASY_DIMENSIONS = 12.0
DOUBLING_DIMENSIONS = 2.7

# Not measured.
SAMPLE = 1000  # fewest rows on which recall is measured
SAMPLE_ON_CUDA = 4000
SAMPLE_OF_JOIN = 2000  # the same on CUDA for a start from the lists of graphs, as in a merge
SAMPLED_MISSES = 10.0  # sampled rows, times 1 - recall, at least: fewer than 3 expected misses measure nothing
ROW_SECONDS = 4e-5  # seconds per row on one thread, for a few hundred rows; limits the default number of threads
LEAST_SLAB = 1 << 15  # fewest points per slab in the search for true neighbours; smaller slabs have much overhead
LEAST_TRUTH_BYTES = 256 * MIB  # memory for that search, which would be very slow with less

# Case: nn_descent sift-1m on cuda. Chosen on: not recorded.
# Numbers on CUDA that differ from the CPU's.
CLUSTER_ON_CUDA = 256  # mean points per cluster [128, 256, 512]
LEAST_BLOCK_ON_CUDA = 1 << 13  # fewest rows per block, as fewer leave the device idle [1 << 12, 1 << 13, 1 << 14]
MOST_BLOCK_ON_CUDA = 1 << 16  # most rows per block: larger blocks are no faster [1 << 15, 1 << 16, 1 << 17]
NEIGHBORS_PER_HUB_FEW = 15  # NEIGHBORS_PER_HUB for k <= 10 [11, 15, 31]
WIDTH_FEW = 192  # WIDTH for k <= 10 [128, 192, 384]
TRAINED_ON_CUDA = 48  # training points of k-means per cluster [24, 48, 96]
KMEANS_ITERS_ON_CUDA = 4  # [2, 4, 8]
BLOCKS_ON_CUDA = 80  # number of blocks, within these limits, so that a block takes little memory

# Case: nn_descent sift-1m on cuda. Chosen on: not recorded.
# Blocks and tiles of a start on CUDA, and of sorting for reverse lists.
SCORES_OF_A_PAIR = 16  # minimum number of members kept per (point, cluster) pair [8, 16, 32]
USUAL_PROBES = 16  # blocks of a start have more points if each has fewer near clusters than this
LEAST_SORTED_ON_CUDA = 1 << 20  # list entries that are sorted at once: two per point, between these limits,
MOST_SORTED_ON_CUDA = 1 << 22  # or one per point if that is more
RANGES = 1 << 8  # most chunks that rows are divided into to find the range of each column
RANGE_ROWS = 32  # fewest rows in such a chunk
MEANS_COLUMNS = 64  # columns whose cluster means are computed at once
SCAN_QUERIES = 64  # points per tile
SCAN_MEMBERS = 64
SCAN_WARPS = 4  # no row is split between warps, so its minimum needs no synchronization
LARGE_CLUSTER = 4  # most members of a cluster that are compared, as a multiple of the mean cluster size
NEAR_STEP = 64  # columns loaded at once for rows longer than SHORT
NEAR_WARPS = 4
FORM_WARPS = 4
REVERSE_BLOCK = 1024  # list entries per program that makes reverse lists
