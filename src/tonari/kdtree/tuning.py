"""Tuned numbers of the k-d tree: they affect its speed, but no answer."""

from tonari.core.units import MIB

# Case: kdtree magnitudes-d10, sift-d10 on cpu. Chosen on: not recorded.
LEAF = 64  # target number of points of a leaf [32, 64, 128]

# Case: kdtree uniform-d3, sift-d5 on cpu. Chosen on: not recorded.
# The same for few dimensions. Boxes prune less as the dimension grows, so leaves become larger.
LEAF_UP_TO = {3: 16, 5: 32}  # by dimensions [{3: 16, 5: 32}, {3: 32, 5: 32}, {3: 16, 5: 16}, {3: 32, 5: 64}]

# Case: kdtree magnitudes-d10, uniform-d3 on cpu. Chosen on: not recorded.
QUERY_BLOCK = 512  # queries of a task: a few ms of work on data that suit a tree [128, 512, 2048]
BLOCKS_PER_THREAD = 4  # minimum, so that all threads stay busy to the end [2, 4, 8]
ROUTED = 1 << 16  # queries of a task when they are routed to their leaves [1 << 14, 1 << 16]
SLICE_VALUES = 1 << 26  # values that are read between two checks for Ctrl-C: some tens of ms [1 << 24, 1 << 26]
ONE_BLOCK_PAIRS = 1 << 20  # most pairs of a single block on one thread, whose lists are in memory twice

# Case: kdtree graph-d3 on cpu. Chosen on: not recorded.
RANGES_PER_THREAD = 4  # ranges of rows in a build [2, 4, 8]
RANGE_ROWS = 16_384  # fewest rows of a range [4_096, 16_384, 65_536]

# Case: small index-1x1000x3 on cpu. Chosen on: Xeon.
QUICK_QUERIES = 16  # most queries of a search in one call, which are not sorted and do not see Ctrl-C [1, 16, 64]
QUICK_PAIRS = 1 << 16  # most pairs of a radius search in one call, which has room for all of them [1 << 14, 1 << 16]
BUILT_LATER = 2e-3  # seconds of a build that are left to the first search [5e-4, 2e-3]

# Not measured.
POINT_SECONDS = 2e-9  # seconds of comparing a query with a point of a leaf

# Case: gieseke2014 fig5-d10 on cpu. Chosen on: not recorded.
BUFFERED_TIMES = 2  # factor on the points of a leaf in the buffered traversal, which reads them once for many queries
BUFFERED_BLOCK_BYTES = 2 * MIB  # state of a thread's queries between rounds: the size of the second-level cache

# Case: kdtree sift-d10, sift-d5 on cuda. Chosen on: H100.
LEAF_ON_CUDA = 64  # [64, 128, 192]
HOME_QUERIES = 8  # per program [4, 8, 16]
FIRST_STEP = 1 << 12  # queries of the first launch; later ones have more while launches take less than STEP_SECONDS:
STEP_SECONDS = 0.05  # [0.02, 0.05, 0.1]
STEP_GROWTH = 16  # largest ratio of the queries of one launch to those of the launch before

# Case: kdtree stream on cuda. Chosen on: not recorded.
# Queries in host memory are copied in blocks: one is searched while the next is copied to the device and the lists of
# the previous one are copied back. Four blocks hide most of the copying; smaller ones are slower, as they share less in
# the caches.
MOST_HOST_BLOCK = 1 << 20
LEAST_HOST_BLOCK = 1 << 17  # [1 << 16, 1 << 17, 1 << 18]
HOST_BLOCKS = 4  # [2, 4, 8]

# Case: kdtree build-d10 on cuda. Chosen on: not recorded.
# A program halves nodes whose leaves have at most MOST_HALVED points. It reads the rows five times, which takes longer
# than sorting if they have more than MOST_HALVED_COLUMNS columns.
MOST_HALVED = 128
MOST_HALVED_COLUMNS = 20  # [12, 20, 28]
SPREAD_SEGMENTS = 16  # per program
KEY_BLOCK = 1024  # points of a program [512, 1024, 2048]

# Case: radius_cuda within-tree-d3 on cuda. Chosen on: not recorded.
PILOT_QUERIES = 4096  # queries whose hits are counted first; if there are less than twice as many, all are counted
ROOM_BYTES = 1 << 30  # most memory for room that may not be used

# Case: gieseke2014 fig5-d10 on cuda. Chosen on: not recorded.
WALKED_SHARE = 100  # the buffered traversal leaves one query in this many to the walk,
WALKED_ALONE = 1 << 17  # but at least this many: 0.4 ms, 3 ns each

# Not measured.
LEAST_SLAB = 1 << 16  # fewest points of the tree of a slab
