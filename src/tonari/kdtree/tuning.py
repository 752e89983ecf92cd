"""Tuned numbers of the k-d tree: they affect its speed, but no answer.

The comment above a group names the benchmark cases that time it, and the machine whose timings chose the numbers.
Values in brackets are the alternatives that ``python -m benchmarks tune kdtree`` times.
"""

from tonari.core.units import MIB

# Case: kdtree magnitudes-d10, sift-d10 on cpu. Chosen on: an unrecorded machine.
# The size of leaves on the CPU.
LEAF = 64  # target number of points per leaf [32, 64, 128]

# Case: kdtree uniform-d3, sift-d5 on cpu. Chosen on: an unrecorded machine.
# Target number of points per leaf in few dimensions. Boxes exclude fewer points as the dimension grows, so that larger
# leaves become better.
LEAF_UP_TO = {3: 16, 5: 32}  # by dimensions [{3: 16, 5: 32}, {3: 32, 5: 32}, {3: 16, 5: 16}, {3: 32, 5: 64}]

# Case: kdtree magnitudes-d10, uniform-d3 on cpu. Chosen on: an unrecorded machine.
# The work of a task on the CPU.
QUERY_BLOCK = 512  # queries per task: a few ms of work on data that suit a tree [128, 512, 2048]
BLOCKS_PER_THREAD = 4  # minimum number of blocks per thread, so that all threads stay busy to the end [2, 4, 8]
ROUTED = 1 << 16  # queries per task of finding the leaf that contains each query [1 << 14, 1 << 16]
SLICE_VALUES = 1 << 26  # number of values read between two checks for Ctrl-C: some tens of ms [1 << 24, 1 << 26]
ONE_BLOCK_PAIRS = 1 << 20  # maximum pairs of a radius search on one thread in one block; its lists are in memory twice

# Case: kdtree graph-d3 on cpu. Chosen on: an unrecorded machine.
# Passes over the rows in a build on the CPU, which all threads share.
RANGES_PER_THREAD = 4  # ranges of rows per thread in a pass of the build [2, 4, 8]
RANGE_ROWS = 16_384  # minimum number of rows in a range [4_096, 16_384, 65_536]

# Case: small index-1x1000x3 on cpu. Chosen on: Xeon.
# Small searches on the CPU.
QUICK_QUERIES = 16  # maximum queries of a search in one native call, without sorting and checks for Ctrl-C [1, 16, 64]
QUICK_PAIRS = 1 << 16  # maximum pairs of a radius search in one native call, with room for all [1 << 14, 1 << 16]
BUILT_LATER = 2e-3  # maximum expected seconds of a build that is left to the first search [5e-4, 2e-3]

# Not measured.
POINT_SECONDS = 2e-9  # seconds for comparing a query with a point of a leaf

# Case: gieseke2014 fig5-d10 on cpu. Chosen on: an unrecorded machine.
# The buffered traversal on the CPU.
BUFFERED_TIMES = 2  # factor by which leaves are larger if they are buffered, and read once for many queries
BUFFERED_BLOCK_BYTES = 2 * MIB  # maximum bytes that a thread's queries keep between rounds, to fit into the cache

# Case: kdtree sift-d10, sift-d5 on cuda. Chosen on: H100.
# Leaves and launches on CUDA.
LEAF_ON_CUDA = 64  # points per leaf [64, 128, 192]
HOME_QUERIES = 8  # queries per program of home_kernel, which finds the first leaf of each query [4, 8, 16]
FIRST_STEP = 1 << 12  # queries of the first launch of a search
STEP_SECONDS = 0.05  # seconds per launch: after a shorter one, later launches get more queries [0.02, 0.05, 0.1]
STEP_GROWTH = 16  # maximum number of queries of a launch, as a multiple of the previous launch

# Case: kdtree stream on cuda. Chosen on: an unrecorded machine.
# Queries in host memory are copied in blocks: while one block is searched, the next is copied to the device and the
# lists of the previous one are copied back. Four blocks hide most of the copying. Smaller blocks are searched more
# slowly, because fewer of their queries share leaves in the caches.
MOST_HOST_BLOCK = 1 << 20  # maximum number of queries per block
LEAST_HOST_BLOCK = 1 << 17  # minimum number of queries per block [1 << 16, 1 << 17, 1 << 18]
HOST_BLOCKS = 4  # number of blocks of a search, unless the limits on their size require another number [2, 4, 8]

# Case: kdtree build-d10 on cuda. Chosen on: an unrecorded machine.
# A program halves a node five times if its leaves have at most MOST_HALVED points. It reads the node's rows each time,
# which takes longer than sorting keys if rows have more than MOST_HALVED_COLUMNS columns.
MOST_HALVED = 128
MOST_HALVED_COLUMNS = 20  # [12, 20, 28]
SPREAD_SEGMENTS = 16  # segments per program that finds dimensions of largest variance
KEY_BLOCK = 1024  # points per program that computes sort keys [512, 1024, 2048]

# Case: radius_cuda within-tree-d3 on cuda. Chosen on: an unrecorded machine.
# Radius searches on CUDA, which first count the hits of some queries, the pilot.
PILOT_QUERIES = 4096  # queries of the pilot; a search of fewer than two times this number counts all hits instead
ROOM_BYTES = 1 << 30  # maximum memory reserved for the hits of all queries; part of it stays unused

# Case: gieseke2014 fig5-d10 on cuda. Chosen on: an unrecorded machine.
# The last queries of the buffered traversal on CUDA, which are left to the walk.
WALKED_SHARE = 100  # the walk takes over when at most this fraction (1 / 100) of all queries are unfinished
WALKED_ALONE = 1 << 17  # number of unfinished queries with which the walk always takes over: 0.4 ms, 3 ns each

# Not measured.
LEAST_SLAB = 1 << 16  # minimum number of points in the tree of a slab
