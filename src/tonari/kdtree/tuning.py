"""Tuned numbers of the k-d tree: they affect its speed, but no answer."""

from tonari.core.units import MIB

# Case: kdtree magnitudes-d10, sift-d10 on cpu. Chosen on: not recorded.
LEAF = 64  # target number of points of a leaf [32, 64, 128]

# Case: kdtree uniform-d3, sift-d5 on cpu. Chosen on: not recorded.
# The same up to some dimensions: boxes prune less as the dimension grows, so leaves become larger.
LEAF_UP_TO = {3: 16, 5: 32}  # by dimensions [{3: 16, 5: 32}, {3: 32, 5: 32}, {3: 16, 5: 16}, {3: 32, 5: 64}]

# Case: kdtree magnitudes-d10, uniform-d3 on cpu. Chosen on: not recorded.
QUERY_BLOCK = 512  # queries of a task: a few ms of work on data that suit a tree [128, 512, 2048]
BLOCKS_PER_THREAD = 4  # minimum, so that all threads stay busy to the end [2, 4, 8]
ROUTED = 1 << 16  # queries of a task when they are routed to their leaves [1 << 14, 1 << 16]
SLICE_VALUES = 1 << 26  # that are read between two checks for Ctrl-C: some tens of ms [1 << 24, 1 << 26]
ONE_BLOCK_PAIRS = 1 << 20  # of queries and points, whose lists one thread holds twice while it writes them

# Case: kdtree graph-d3 on cpu. Chosen on: not recorded.
RANGES_PER_THREAD = 4  # of a build [2, 4, 8]
RANGE_ROWS = 16_384  # minimum [4_096, 16_384, 65_536]

# Not measured.
POINT_SECONDS = 2e-9  # of comparing a query with a point of a leaf

# Case: gieseke2014 fig5-d10 on cpu. Chosen on: not recorded.
BUFFERED_TIMES = 2  # points of a leaf, in the buffered traversal: they are read once for many queries
BUFFERED_BLOCK_BYTES = 2 * MIB  # of the state of a thread's queries between rounds: the second-level cache

# Case: kdtree sift-d10, sift-d5 on cuda. Chosen on: H100.
LEAF_ON_CUDA = 64  # [64, 128, 192]
HOME_QUERIES = 8  # per program [4, 8, 16]
FIRST_STEP = 1 << 12  # queries of the first launch; more as long as launches take less than STEP_SECONDS:
STEP_SECONDS = 0.05  # [0.02, 0.05, 0.1]
STEP_GROWTH = 16  # times as many at most

# Case: kdtree stream on cuda. Chosen on: not recorded.
# Queries from host memory come in blocks: one is searched while the next comes and the lists of the last one go back.
# Four blocks hide most of that, and smaller ones are searched more slowly: they share less in the caches.
MOST_HOST_BLOCK = 1 << 20
LEAST_HOST_BLOCK = 1 << 17  # [1 << 16, 1 << 17, 1 << 18]
HOST_BLOCKS = 4  # [2, 4, 8]

# Case: kdtree build-d10 on cuda. Chosen on: not recorded.
# A program halves nodes whose leaves have at most so many points. It reads the rows five times, which takes longer than
# sorting if they have more than so many columns.
MOST_HALVED = 128
MOST_HALVED_COLUMNS = 20  # [12, 20, 28]
SPREAD_SEGMENTS = 16  # per program
KEY_BLOCK = 1024  # points of a program [512, 1024, 2048]

# Case: radius_cuda within-tree-d3 on cuda. Chosen on: not recorded.
PILOT_QUERIES = 4096  # that are counted first; fewer than twice as many are all counted
ROOM_BYTES = 1 << 30  # most memory for room that may not be used

# Case: gieseke2014 fig5-d10 on cuda. Chosen on: not recorded.
WALKED_SHARE = 100  # one query in so many is left to the walk by the buffered traversal,
WALKED_ALONE = 1 << 17  # and never fewer than so many: 0.4 ms, 3 ns each

# Not measured.
LEAST_SLAB = 1 << 16  # points of a tree of some of the points
