"""Tuned numbers of NN-Descent, which affect the time of a run and its lists, but not the recall that it reaches.

In the other packages tuned numbers affect no answer. Here each run measures its recall, and ends when it reaches the
target.
"""

from tonari.core.units import MIB

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: two cores of an EPYC of family 26.
CLUSTER = 128  # mean points per cluster [64, 128, 256]
MOST_CLUSTERS = 8192  # every point is compared with all centres
MEMBERS_MET = 8192  # cluster members that a point is compared with [4096, 8192, 16384]
BLOCK = 256  # rows per task [128, 256, 512]
TRAINED = 16  # points per cluster that k-means sees [8, 16, 32]
KMEANS_ITERS = 1  # [1, 2]

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: not recorded.
# With 16 + 16 hubs these make just under 512 or 1024 candidates, which a CUDA device sorts at once.
HUBS = 16  # neighbours whose lists a point reads in a round [8, 16, 24]
REVERSE = 16  # reverse neighbours whose lists it reads [8, 16, 24]
NEIGHBORS_PER_HUB = 31  # entries that it reads from each [15, 31, 47]
WIDTH = 384  # new points that it is compared with [192, 384, 768]

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: not recorded.
NEAR_CLUSTERS = 8  # near clusters found for each point [4, 8, 16]
POINT_BLOCK = 32  # points compared together [16, 32, 64]
LARGEST_CLUSTER = 4  # times the mean: larger clusters are cut
MOST_MEMBERS = 2  # most members that a block is compared with, relative to `n_probe` average clusters [1, 2, 4]
NEAR_TARGET = 0.8  # largest assumed share of missing neighbours that a light round leaves [0.7, 0.8, 0.9]
TASK_BLOCKS = 8  # blocks per task [4, 8, 16]
TASK_QUERIES = 256  # rows per task of comparisons with centres [128, 256, 512]
PACKED_CENTRES = 512  # centres that are packed at once [256, 512, 1024]
COARSE_ENOUGH = 0.95  # share of the best by fine scores that coarse scores must find
LOOKS = 4  # clusters in the sample that decides whether coarse scores suffice for points
LOOK_QUERIES = 64  # queries from each of these clusters
LOOK_POINTS = 2048  # points from each of these clusters
LOOK_CENTRES = 256  # centres in the sample that decides whether coarse scores suffice for centres
LOOK_NEAR = 4  # near centres of each of these centres

# Case: nn_descent sift-100k, curve-gaussian, curve-gist on cpu. Chosen on: two cores of a Xeon with AMX, 2026-11-28.
# The number of clusters of a start is chosen by the blocks of a few rows, whose true neighbours are known.
START_MISSES = 1.0  # true neighbours that a start may lack, divided by the number that the graph may lack [1, 1.2, 2]
PILOT_BLOCKS = 64  # blocks that are compared with more and more clusters
FEWER_PROBES = 8  # they begin with the usual number of clusters divided by this
TRUSTED_STEP = 1.5  # most growth of the number of clusters that is extrapolated from two numbers
LEVEL = 0.85, 0.25  # twice as many clusters miss more than this share, and less than this: other errors dominate
MOST_RANKED = 1024  # clusters nearest to each cluster that are found
# A start compares contracted rows if they rank nearly all true neighbours of a few rows within the length of a list.
SHORT_COLUMNS = (32, 48, 64, 96, 128)
SHORT_SHARE = 6  # least ratio of all columns to contracted ones
SHORT_MISSES = 0.7  # true neighbours that they may rank lower, relative to the neighbours that the graph may lack
SHORT_ROWS = 8192  # rows of the sample that gives directions, and ranks true neighbours
SHORT_PAIRS = 1024  # true neighbours that are ranked
SHORT_TASK = 2048  # rows that are contracted at once

# Not measured: bounds of memory and of the time between two checks for Ctrl-C.
TRANSFORMED_VALUES = 1 << 20  # values of the rows that are transformed at once
SCALE_ROWS = 8_192  # sample for the mean and the scale
TERM_ROWS = 1 << 14  # per task

# Case: nn_descent curve-gaussian on cpu. Chosen on: not recorded.
# The run has stalled if each of the last rounds changed less than this share of all neighbours (or, in a merge, of the
# neighbours of the smaller side).
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
SAMPLE_OF_JOIN = 2000  # the same for two graphs that are merged
SAMPLED_MISSES = 10.0  # misses expected in the sample per neighbour rank, at the target recall; below 3 means nothing
ROW_SECONDS = 4e-5  # seconds per row on one thread, for a few hundred rows; limits the default number of threads
LEAST_SLAB = 1 << 15  # points of a search for true neighbours; with smaller slabs the overhead per slab dominates
LEAST_TRUTH_BYTES = 256 * MIB  # the search would be very slow with less

# Case: nn_descent sift-1m on cuda. Chosen on: not recorded.
CLUSTER_ON_CUDA = 256  # mean points per cluster [128, 256, 512]
LEAST_BLOCK_ON_CUDA = 1 << 13  # rows per task: fewer leave the device idle, [1 << 12, 1 << 13, 1 << 14]
MOST_BLOCK_ON_CUDA = 1 << 16  # more are no faster [1 << 15, 1 << 16, 1 << 17]
NEIGHBORS_PER_HUB_FEW = 15  # for at most ten neighbours [11, 15, 31]
WIDTH_FEW = 192  # [128, 192, 384]
TRAINED_ON_CUDA = 48  # points per cluster that k-means sees [24, 48, 96]
KMEANS_ITERS_ON_CUDA = 4  # [2, 4, 8]
BLOCKS_ON_CUDA = 80  # target number of tasks within these limits: their memory is then small compared with the lists

# Case: nn_descent sift-1m on cuda. Chosen on: not recorded.
SCORES_OF_A_PAIR = 16  # minimum number of members kept per (point, cluster) pair [8, 16, 32]
USUAL_PROBES = 16  # near clusters per point that the length of a block assumes
LEAST_SORTED_ON_CUDA = 1 << 20  # numbers sorted at once: two per point between these,
MOST_SORTED_ON_CUDA = 1 << 22  # or one per point if that is more
RANGES = 1 << 8  # parts of the rows for which the range of each column is computed
RANGE_ROWS = 32
MEANS_COLUMNS = 64  # columns whose cluster means are computed at once
SCAN_QUERIES = 64  # points per tile
SCAN_MEMBERS = 64
SCAN_WARPS = 4  # no row is split between warps, so its minimum needs no synchronization
LARGE_CLUSTER = 4  # members compared in a large cluster, at most, as a multiple of the mean cluster size
NEAR_STEP = 64  # columns loaded at once for rows longer than SHORT
NEAR_WARPS = 4
FORM_WARPS = 4
REVERSE_BLOCK = 1024  # entries per program
