"""Tuned numbers of exact search on CUDA: they affect its speed, but no answer."""

from tonari.core.units import MIB

# Case: exact_cuda search-k10, graph-sift on cuda. Chosen on: not recorded.
RESIDENT_PROGRAMS = 2  # programs that a multiprocessor runs concurrently
HOPPER_ROWS = 256  # rows per program of Hopper's kernel, tiles between two pauses of the matrix units, and buffers
HOPPER_TILES = 4
HOPPER_STAGES = 4
MOST_ROUNDS = 4  # successive rounds of programs
LEAST_BLOCKS = 4  # blocks of points per program, so that its pipeline fills
UNEVEN = 5.0  # a segment has room for its share of a list plus this many standard deviations

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: not recorded.
MIRRORED_ROWS = 256  # of a tile, which is whole tiles of points, where rows are streamed
MIRRORED_STAGES = 4
MIRRORED_WARPS = 8
LEAST_STREAMED = 1024  # bytes of such rows from which on one product for both is faster
NOTE_SLOTS = 64  # entries of a row that are handed over at a time
NOTE_WARPS = 4
COMPARED_TILES = 128  # of a batch whose errors are compared at a time
MIRRORED_BATCHES = 4  # fewest batches of a graph in which rows and points are compared once for both

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: H100.
# Screening one more point costs SCREEN_COST, one more slot in a list SLOT_COST.
SCREEN_COST = 1.0
SLOT_COST = 12.0
ODDS = 1e-4
LEAST_SAMPLE = 4096
LARGEST_MEAN = 100.0  # nearest points in the sample: more do not improve the threshold, and sums below would underflow

# Case: exact_cuda graph-960, graph-sift on cuda. Chosen on: not recorded.
WIDE_PROGRAMS = 2  # on a multiprocessor where shared memory has room for them, with this many buffers:
LEAST_STAGES = 3
MOST_STAGES = 5
TALL = (128, 8, 240)  # rows, warps and registers of two warpgroups, which share the points; one program fits
# Bytes up to which tall tiles hold rows, which are faster for graphs of int8: a tile's products take half as long as
# those of float16, and the points that they wait for come as slowly.
TALL_TO = 1152

# Case: exact_cuda search-k10, search-k64 on cuda. Chosen on: not recorded.
SEGMENTS = 256  # of a list, which a program reads at once: more than most lists have, so that these share a kernel
THRESHOLD_ROWS = 256  # rows per program that computes thresholds
THRESHOLD_SLOTS = 1024  # of a row's list that are read at a time
CERTIFIED_ROWS = 256  # rows per program
POINT_WARPS = 16  # per tile of points. A program packs fewer queries than points, so that small searches fill the GPU:
QUERY_ROWS = 16
QUERY_WARPS = 4

# Case: exact_cuda contracted-topics, contracted-graph-gist on cuda. Chosen on: not recorded.
LIMIT_SLOTS = 1024  # of a row's list, or of its minima, that are read at a time
LIMIT_MEMBERS = 128  # of a tile of contracted rows; most members are ruled out by the first columns:
LIMIT_COLUMNS = 32
LIMIT_WARPS = 4
LIMIT_FEW = 128  # of so few rows each has several programs, which keep multiprocessors busy:
LIMIT_PARTS = 16
AT_ONCE = 3  # batches of contracted rows that are joined if memory allows: each takes the host 3 ms to launch

# Not measured by a case, but by hand on an H100: 10,000 queries among a million points of 128 columns, whose noise
# leaves about ten rows. Searching them again takes the device 0.2 ms, and 1 to 1.5 ms if the host first has to learn
# which rows these are, and then launches twenty kernels. The numbers of rows are those of tiles of the screen.
ROWS_AHEAD = (16, 64, 128)  # searched before it is known which are left, if the last search by the plan has left rows
ROWS_AGAIN = 64  # of a replayed search, whose kernels are captured as a second graph

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Searches whose first attempt takes two launches (screens/few.py), about 15 µs beside reading the packed points. The
# usual launches take 45 µs beside that, and two or three times the work on the host.
FEW_QUERIES = 4  # which share one pass over the points, without matrix units
FEW_POINTS = 1 << 20  # one program surveys all tiles; from here on reading the points takes 85 µs and more at d = 128
FEW_COLUMNS = 1 << 12  # each program of the screen keeps a packed copy of the queries: 2 MB for each of them
FEW_NEIGHBOURS = 32  # candidates are compared with each other: 512 for this many, in about 5 µs

# Case: exact_cuda hard-copies, hard-copies-16 on cuda. Chosen on: not recorded.
COPIES_SECONDS = 0.1  # least seconds of a search that looks for copies of rows first, in a few milliseconds
COPIED_ROWS = 16  # per program that finds or copies them, in steps of this many columns:
COPIED_COLUMNS = 64
COPIED_WARPS = 4

# Not measured.
DENSE_POINTS = 64  # points per program of dense values, most queries per program, lanes per thread
DENSE_ROWS = 32
DENSE_LANES = 2
LEAST_SLICE = 1 << 14  # if slices would be shorter than this many points, blocks of queries are made shorter
LISTED_WIDENING = 1.25  # lists of a launch are at most so much longer than the shortest
REMEMBERED = 64  # keys without a graph that are remembered, and plans whose searches have left rows

# Not measured: bounds of memory.
MINIMA_BYTES = 2048 * MIB  # most memory for the minima of a batch of queries: longer batches are no faster
LEAST_BATCHES = 4  # of queries, of which several are on their way between the device and the CPU
LISTED_ENTRIES = 1 << 26  # most entries of padded lists on the device
WITHIN_ROWS = 1 << 16  # of a batch within a radius, some tens of ms, if there is room for their lists
WITHIN_ROW_BYTES = 128  # of a row's limit, threshold, counts and places
WITHIN_SCRATCH_BYTES = 1 << 28  # for the values and ids of all candidates of some blocks
MOST_GRAPHS = 8
HELD_BYTES = 1 << 29  # planned bytes of all graphs on all devices: at most the memory that plans leave unused

# Case: exact_cuda search-k10 on cuda. Chosen on: H200.
# Of the largest graph of a captured search of an Index. To launch 10,000 queries among a million prepared points of 128
# columns, which hold 0.27 GB, takes 1.2 ms of their 6.5 ms step by step; for searches that take long it is negligible.
LARGEST_BYTES = 3 << 27
LONGEST_SECONDS = 0.1

# Case: exact_cuda cold-graph on cuda. Chosen on: not recorded.
# Rows of a long search that its first level searches at least. The kernels for these are compiled with those of the
# first attempt; others for fewer rows would take seconds, and so many rows take less than a millisecond.
RETRIED = 512
