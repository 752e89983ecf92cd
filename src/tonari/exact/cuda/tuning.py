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

# Case: exact_cuda search-k10 on cuda. Chosen on: not recorded.
HOPPER_BYTES = 256  # of a row that Hopper's kernel screens faster if it lists the groups below a threshold
LEAST_ROWS = 512  # for fewer queries, writing all minima is fast, and the kernel that lists has too few programs
LEAST_STRIDE = 8  # with a smaller stride, the sample itself is too much of the work
STRAGGLERS = 128  # rows at most, a tile of the screen, that are searched again before it is known which are left
IN_FLIGHT = 2  # batches in flight, few enough that Ctrl-C takes effect and progress is accurate

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: not recorded.
NOTED_COST = 48.0  # as SLOT_COST, of a slot in a list of a graph, for what earlier batches note with atomics
MIRRORED_LONGER = 2  # times as long are their batches: their screens become short, and launches stay as many

# Case: exact_cuda search-d16, search-d32 on cuda. Chosen on: not recorded.
# Up to this many columns the first precision is "split": products are then a small part of the screen, and float16
# leaves many rows of few columns to a second one. Bytes are exact in float16.
SPLIT_FIRST = 16

# Case: exact_cuda graph-960, graph-sift on cuda. Chosen on: not recorded.
WIDE_ROWS = 64  # of a tile, of a program, and of a thread: three programs fit with these
WIDE_WARPS = 4
WIDE_REGISTERS = 168
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
LIMIT_ROWS = 256  # per program that computes limits
CONTRACTED_SECONDS = 5e-3  # least seconds of a search in all dimensions for which prepared points are contracted
CONTRACTED_WIDTH = 64  # groups at first if rows are contracted; searches fit it to the data
FITTED_ROWS = 4096  # least queries for which the width is fitted
FEW_UNPROVED = 0.01  # share of unproved rows up to which they are retried at the first precision
HOPELESS = 0.5  # share of unproved rows at the largest width from which on all dimensions are screened
NEAREST = 10  # or k, and k: the nearest points in p coordinates, which are refined for the first k-th value
ROOMY = 64  # times the width: the groups of a row for which the last retry in p coordinates has room
CONTRACTED_AGAIN = 1000.0  # times as long as the least groups of a row takes its search in all dimensions
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

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Shapes of the programs of these two launches (kernels/screens/few.py).
FEW_BLOCK = 128  # columns of a tile that are read at once: 8 loads of 16 bytes per thread
FEW_CHUNKS = 64  # of the numbers that a threshold is taken from, at least the groups that are wanted
FEW_CHUNK = 32  # candidates whose values one program computes
FEW_RANKED = 32  # candidates that all others are compared with at a time
FEW_SCREEN_WARPS = 8
FEW_SCREEN_REGISTERS = 128  # so that a multiprocessor has room for both programs
FEW_PROGRAMS = 2  # that a multiprocessor runs at a time: each with the loads of two tiles of 32 KiB under way
FEW_MOST_PROGRAMS = 512  # of any device, each with a packed copy of the queries
FEW_WARPS = 4
FEW_REGISTERS = 255  # there are few of these programs, so that none has to leave room for another
FEW_SURVEYED = 1024  # tiles; a survey of more takes twice FEW_WARPS warps

# Case: exact_cuda hard-copies, hard-copies-16 on cuda. Chosen on: not recorded.
COPIES_LEFT = 256  # rows that a first level has not proved, from which on copies of points are looked for
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

# Case: exact_cuda contracted-topics, contracted-patches on cuda. Chosen on: not recorded.
# The directions of a contraction, and whether it is worth its time.
FORM_DIMS = (32, 64, 128, 256)
FORM_PILOT_ROWS = 128
FORM_SECONDS = 0.06  # what the choice takes, and may take of a whole search:
FORM_SHARE = 0.03
FORM_WORTH = 0.7  # most seconds of a contraction, relative to those of all dimensions
FORM_MOST_LEFT = 512  # candidates of a row for which a search can widen (attempts/contracted.py)
FORM_NEARLY_ALL = 0.95  # of the rows may have no more candidates than that
DIRECTIONS_VALUES = 2**25  # of the sample for the directions, and its rows
DIRECTIONS_ROWS = 32768
ITERATIONS = 8  # of the subspace iteration: its result need not have converged
FORM_ROWS = 16  # per program that writes form rows, or rounds contracted ones, some columns at a time
FORM_WARPS = 4
FORM_COLUMNS = 64

# Case: exact_cuda small, search-k10 on cuda. Chosen on: not recorded.
# Results are correct with any centre and scale (the bounds measure their effect); those of a sample are good enough.
CENTRE_ROWS = 8192
CENTRE_VALUES = 2**20  # fewer wide rows are sampled, to keep small searches fast,
CENTRE_FEWEST = 512  # but not fewer than this
CENTRE_PROGRAMS = 256  # programs that read the sample: two per multiprocessor of a large GPU
CENTRE_TILE = {"ROWS": 32, "COLUMNS": 32}

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: not recorded.
# Programs that refine candidates. By default ptxas uses fewer registers and waits for the loads of every step; with
# this many it issues the loads of four steps at once.
REFINE_UNIT = 4  # most elements per load: with 16 columns per step, four threads share a row
REFINE_WARPS = 4
WARP_CANDIDATES = 16  # two rows per thread with four lanes each; fewer if a term divides, which takes more registers:
DIVIDING_CANDIDATES = 8
REFINE_REGISTERS = 96  # per thread for aligned rows
CENTRED_REGISTERS = 128

# Case: exact_cuda search-k10-half, search-k10-noise on cuda. Chosen on: not recorded.
BYTES_SECONDS = 3e-3  # least seconds of a search that looks first whether elements are bytes, in 0.05 ms where not
BYTES_SAMPLE = 8192  # rows whose elements are looked at before all others
BYTES_LOOKED = 4  # rows that are looked at in host memory first: launches for a sample of all take four times as long

# Case: exact_cuda hard-offset-1e3, hard-tight on cuda. Chosen on: not recorded.
# A search of at least PILOT_BATCHES batches first determines, on PILOT_ROWS rows, how many groups, at most WIDEST times
# the planned width, take the least time.
PILOT_BATCHES = 8
PILOT_ROWS = 1024
WIDEST = 8
WIDER = 4  # rows that were not proved at first are retried with this many times as many groups, short rows with more
SHORT_COLUMNS = 16  # of a row that is short
NEAR_KEPT = 2  # times the width: the groups near a row, and their members, for which there is room if contracted
SEARCHED_AGAIN = 100.0  # times as long as a row's groups take it takes to search it again, if nothing else is known
RETRIES_TIMES = 3.0  # times as long as products alone: retries write all minima, and may come in several rounds
LEAST_SCRATCH = 1 << 25  # least scratch bytes for rows that are compared with all points
# Rows whose exact values of all points take no longer than another attempt are few. A pair takes as long as its columns
# and OF_PAIR more, which is for selecting.
OF_ATTEMPT = 1 << 30
OF_PAIR = 96
LEAST_OF_SUBSETS = 1 << 15  # points of a subset; all values of fewer are soon compared

# Case: exact_cuda hard-offset-1e6, hard-tight on cuda. Chosen on: not recorded.
AS_BYTES_PRODUCTS = 1 << 34  # that are left, from which on another packed copy and search take less than the levels
AS_BYTES_BESIDE = 3  # groups that are refined beside k: the row's own in a graph, and a few that tie
NEARBY_CENTRES = 64  # queries that a round takes as centres
NEARBY_ROWS = 32768  # form rows in memory at once: each has a distance to every centre
NEARBY_APART = 2.0  # times its reach: a centre that is not so far from another one is dropped
NEARBY_FARTHEST = 4.0  # times its reach: the farthest that a query may be from its centre
NEARBY_SHARE = 0.25  # largest share of the points in a neighbourhood
# Values of pairs that a neighbourhood has to save, of which a search takes some milliseconds: where all values would be
# compared, and where the points would be screened.
NEARBY_VALUES = 1 << 32
NEARBY_SCREEN = 1 << 40
NEARBY_OF_ROUND = 8  # times as many have to be saved by a round
NEARBY_SAMPLE = 4096  # points by which are_inseparable decides

# Case: radius_cuda within-gauss-d128, within-sift-d128 on cuda. Chosen on: not recorded.
WITHIN_FIRST_ROWS = 1024  # of the first batch, whose lists have room for everything: they tell how long lists are
WITHIN_USUAL = 0.99  # share of rows that the length of lists is meant for
WITHIN_TOO_SHORT = 1 / 16  # share of a batch whose lists are too short from which on they are made twice as long
# Listed groups, as a share of all points, from which on screening at the next precision costs less than refining them:
# the screen takes 0.016 ps per point and column, refining a listed group 8 to 32 times 4 bytes per column.
WITHIN_HARD = 1 / 512
WITHIN_FEWEST_HARD = 32
WITHIN_WORTH = 0.5  # the next precision is given up if it leaves more than this share of the groups

# Case: exact_cuda host-routes on cuda. Chosen on: not recorded.
# Members per slice of work: at most what takes a millisecond, or a second if each member is a page read from disk; and
# not so few that a thread takes longer to start.
HOST_MEMBERS = 1 << 13
HOST_LEAST_MEMBERS = 1 << 9
HOST_LONG_SECONDS = 1.0  # of the CPU, from which on rows may be left to the device, whose kernels may be uncompiled

# Not measured: bounds of memory.
COMPARED_ENTRIES = 1 << 22  # of lists that are ordered at a time
PACKED_AT_ONCE = 256 * MIB  # original rows that are on the device at once while "host_refine" packs the points
REFINE_SCRATCH_BYTES = 1 << 28  # of refine_groups, unless a single row needs more
FORM_VALUES = 2**24  # float64 values of form rows in memory at once

# Case: exact_cuda cold-graph on cuda. Chosen on: not recorded.
# Rows of a long search that its first level searches at least. The kernels for these are compiled with those of the
# first attempt; others for fewer rows would take seconds, and so many rows take less than a millisecond.
RETRIED = 512
