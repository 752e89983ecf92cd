"""Tuned numbers of exact search on CUDA: they affect its speed, but no answer."""

from tonari.core.units import MIB

# Case: exact_cuda search-k10, graph-sift on cuda. Chosen on: not recorded.
RESIDENT_PROGRAMS = 2  # programs that a multiprocessor runs concurrently
HOPPER_ROWS = 256  # rows per program of Hopper's kernel; then tiles between two pauses of the matrix units, and buffers
HOPPER_TILES = 4
HOPPER_STAGES = 4
MOST_ROUNDS = 4  # most rounds of programs that run one after another
LEAST_BLOCKS = 4  # blocks of points per program, so that its pipeline fills
UNEVEN = 5.0  # a segment has room for its share of a list plus this many standard deviations

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: not recorded.
MIRRORED_ROWS = 256  # rows of a tile if rows are streamed: whole tiles of points
MIRRORED_STAGES = 4
MIRRORED_WARPS = 8
LEAST_STREAMED = 1024  # bytes of streamed rows from which on computing each product once is faster
NOTE_SLOTS = 64  # notes of a row that are transferred in one step
NOTE_WARPS = 4
COMPARED_TILES = 128  # tiles of a batch whose errors are compared in one step
MIRRORED_BATCHES = 4  # fewest batches of a graph that computes each product once for both rows

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: H100.
# Screening one more point costs SCREEN_COST, one more slot in a list SLOT_COST.
SCREEN_COST = 1.0
SLOT_COST = 12.0
ODDS = 1e-4
LEAST_SAMPLE = 4096
LARGEST_MEAN = 100.0  # nearest points in the sample: more do not improve the threshold, and sums below would underflow

# Case: exact_cuda search-k10 on cuda. Chosen on: not recorded.
HOPPER_BYTES = 256  # bytes of a row that Hopper's kernel screens faster if it lists the groups below a threshold
LEAST_ROWS = 512  # for fewer queries, writing all minima is fast, and the kernel that lists has too few programs
LEAST_STRIDE = 8  # with a smaller stride, the sample itself is too much of the work
STRAGGLERS = 128  # most rows, a tile of the screen, that are searched again before the host knows which are unproved
IN_FLIGHT = 2  # batches in flight, few enough that Ctrl-C takes effect and progress is accurate

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: not recorded.
NOTED_COST = 48.0  # as SLOT_COST, for a slot in a graph's list that earlier batches fill by atomic operations
MIRRORED_LONGER = 2  # factor on the length of their batches: screens are short, but launches take as long as usual

# Case: exact_cuda search-d16, search-d32 on cuda. Chosen on: not recorded.
# Up to this many columns the first precision is "split": products are then a small part of the screen, and float16
# would leave many rows for a second precision. Bytes are exact in float16.
SPLIT_FIRST = 16

# Case: exact_cuda graph-960, graph-sift on cuda. Chosen on: not recorded.
WIDE_ROWS = 64  # rows of a tile; then warps of a program, and registers of a thread, with which three programs fit
WIDE_WARPS = 4
WIDE_REGISTERS = 168
WIDE_PROGRAMS = 2  # programs on a multiprocessor if they fit into shared memory with this many buffers:
LEAST_STAGES = 3
MOST_STAGES = 5
TALL = (128, 8, 240)  # rows, warps and registers of two warpgroups, which share the points; one program fits
# Largest rows, in bytes, for tall tiles, which are faster for graphs of int8: products take half as long as with
# float16, but loading points takes as long.
TALL_TO = 1152

# Case: exact_cuda search-k10, search-k64 on cuda. Chosen on: not recorded.
SEGMENTS = 256  # segments of a list that a program reads at once: more than most lists have, so they share a kernel
THRESHOLD_ROWS = 256  # rows per program that computes thresholds
THRESHOLD_SLOTS = 1024  # slots of a row's list that are read in one step
CERTIFIED_ROWS = 256  # rows per program
POINT_WARPS = 16  # per tile of points. A program packs fewer queries than points, so that small searches fill the GPU:
QUERY_ROWS = 16
QUERY_WARPS = 4

# Case: exact_cuda contracted-topics, contracted-graph-gist on cuda. Chosen on: not recorded.
LIMIT_SLOTS = 1024  # slots of a row's list, or minima of a row, that are read in one step
LIMIT_MEMBERS = 128  # members in a tile of contracted rows; the first columns, this many, rule out most members:
LIMIT_COLUMNS = 32
LIMIT_WARPS = 4
LIMIT_FEW = 128  # up to this many rows, each row has several programs, to keep multiprocessors busy:
LIMIT_PARTS = 16
LIMIT_ROWS = 256  # rows per program that computes limits
CONTRACTED_SECONDS = 5e-3  # least seconds of a search in all dimensions for which prepared points are contracted
CONTRACTED_WIDTH = 64  # groups per row at first if rows are contracted; searches fit the number to the data
FITTED_ROWS = 4096  # least queries for which the width is fitted
FEW_UNPROVED = 0.01  # share of unproved rows up to which they are retried at the first precision
HOPELESS = 0.5  # if the largest width leaves this share of the rows unproved, all dimensions are screened
NEAREST = 10  # the k + max(k, NEAREST) nearest points in p coordinates are refined for the first k-th value
ROOMY = 64  # groups of a row for which the last retry in p coordinates has room, as a multiple of the width
CONTRACTED_AGAIN = 1000.0  # time of searching a row in all dimensions, relative to refining its fewest groups
AT_ONCE = 3  # most batches of contracted rows that are joined into one if memory allows: each takes 3 ms to launch

# Not measured by a case, but by hand on an H100: 10,000 queries among a million points of 128 columns, whose noise
# leaves about ten rows. Searching them again takes the device 0.2 ms, and 1 to 1.5 ms if the host first has to learn
# which rows these are, and then launches twenty kernels. The numbers of rows are those of tiles of the screen.
ROWS_AHEAD = (16, 64, 128)  # rows searched before the host knows which are unproved, if the last search left some
ROWS_AGAIN = 64  # rows that a replayed search retries, by kernels that are captured as a second graph

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Searches whose first attempt takes two launches (screens/few.py): about 15 µs in addition to reading the packed
# points. The usual launches take 45 µs in addition, and two or three times the work on the host.
FEW_QUERIES = 4  # most queries that share one pass over the points, without matrix units
FEW_POINTS = 1 << 20  # one program surveys all tiles; from here on reading the points takes 85 µs and more at d = 128
FEW_COLUMNS = 1 << 12  # each program of the screen keeps a packed copy of the queries: 2 MB for each of them
FEW_NEIGHBOURS = 32  # most neighbours: all candidates, 512 for this k, are compared with each other, in about 5 µs

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Shapes of the programs of these two launches (kernels/screens/few.py).
FEW_BLOCK = 128  # columns of a tile that are read at once: 8 loads of 16 bytes per thread
FEW_CHUNKS = 64  # chunks of minima from which a threshold is computed: at least as many as wanted groups
FEW_CHUNK = 32  # candidates whose values one program computes
FEW_RANKED = 32  # candidates that all others are compared with in one step
FEW_SCREEN_WARPS = 8
FEW_SCREEN_REGISTERS = 128  # so that a multiprocessor has room for both programs
FEW_PROGRAMS = 2  # programs that a multiprocessor runs at once, each of which is loading two tiles of 32 KiB
FEW_MOST_PROGRAMS = 512  # most programs on any device; each has a packed copy of the queries
FEW_WARPS = 4
FEW_REGISTERS = 255  # per thread: these programs are few, so none has to leave registers for another
FEW_SURVEYED = 1024  # tiles; a survey of more takes twice FEW_WARPS warps

# Case: exact_cuda hard-copies, hard-copies-16 on cuda. Chosen on: not recorded.
COPIES_LEFT = 256  # from this many rows left unproved by a first level on, copies of points are looked for
COPIES_SECONDS = 0.1  # least seconds of a search that looks for copies of rows first, in a few milliseconds
COPIED_ROWS = 16  # per program that finds or copies them, in steps of this many columns:
COPIED_COLUMNS = 64
COPIED_WARPS = 4

# Not measured.
DENSE_POINTS = 64  # points per program of dense values; then most queries per program, and lanes per thread
DENSE_ROWS = 32
DENSE_LANES = 2
LEAST_SLICE = 1 << 14  # if slices would be shorter than this many points, blocks of queries are made shorter
LISTED_WIDENING = 1.25  # longest list of a launch, relative to the shortest
REMEMBERED = 64  # keys without a graph that are remembered, and plans whose searches have left rows

# Not measured: bounds of memory.
MINIMA_BYTES = 2048 * MIB  # most memory for the minima of a batch of queries: longer batches are no faster
LEAST_BATCHES = 4  # batches of queries: some are copied between the device and the CPU while others are computed
LISTED_ENTRIES = 1 << 26  # most entries of padded lists on the device
WITHIN_ROWS = 1 << 16  # rows of a batch within a radius, some tens of ms, if there is room for their lists
WITHIN_ROW_BYTES = 128  # bytes of a row's limit, threshold, counts and positions
WITHIN_SCRATCH_BYTES = 1 << 28  # for the values and ids of all candidates of some blocks
MOST_GRAPHS = 8
HELD_BYTES = 1 << 29  # planned bytes of all graphs on all devices: at most the memory that plans leave unused

# Case: exact_cuda search-k10 on cuda. Chosen on: H200.
# Largest bytes of a graph of a captured search of an Index. Without a graph, a search of 10,000 queries among a million
# prepared points of 128 columns, whose graph has 0.27 GB, takes 6.5 ms, 1.2 ms of which are for launches; in longer
# searches, the launches are negligible.
LARGEST_BYTES = 3 << 27
LONGEST_SECONDS = 0.1

# Case: exact_cuda contracted-topics, contracted-patches on cuda. Chosen on: not recorded.
# The directions of a contraction, and whether it is worth its time.
FORM_DIMS = (32, 64, 128, 256)
FORM_PILOT_ROWS = 128
FORM_SECONDS = 0.06  # seconds of the choice; then its largest share of a whole search:
FORM_SHARE = 0.03
FORM_WORTH = 0.7  # most seconds of a contraction, relative to those of all dimensions
FORM_MOST_LEFT = 512  # candidates of a row for which a search can widen (attempts/contracted.py)
FORM_NEARLY_ALL = 0.95  # share of the rows that must have at most that many candidates
DIRECTIONS_VALUES = 2**25  # values of the sample for the directions; then its rows
DIRECTIONS_ROWS = 32768
ITERATIONS = 8  # of the subspace iteration: its result need not have converged
FORM_ROWS = 16  # per program that writes form rows, or rounds contracted ones, some columns at a time
FORM_WARPS = 4
FORM_COLUMNS = 64

# Not measured by a case, but counted: rows of SIFT in 64 coordinates, 10 nearest of 100,000.
# Codes: their coordinates. 127 steps are the largest element of the sample (or CODE_FARTHEST times the element that
# nearly all rows stay below, if that is less), times a margin for all other points.
CODE_COLUMNS = (123, 61)  # 128 bytes with five of the squared length; 64 bytes with three, if memory is short
CODE_FARTHEST = 4.0
CODE_NEARLY_ALL = 0.999
CODE_MARGIN = 1.25
CODE_ROWS = 16  # per program that rounds
FOLDED_HOPPER = True  # lists on Hopper by a kernel whose products do not wait for the maxima
FOLDED_ROWS = 128  # queries of a tile, then warps, buffers and programs of a multiprocessor
FOLDED_WARPS = 4
FOLDED_STAGES = 3
FOLDED_PROGRAMS = 2
CODED_WIDTH = 512  # near points per row at first, with half the room; doubled for later searches if rows are left
CODED_WIDEST = 2  # most near points, as a multiple of these
CODED_READ = 128  # rows that a query reads from host memory, for expected times
CODED_GROUPS = 8  # near groups of a row, as a multiple of its near points
CODED_LISTED = 1 << 26  # from this many points on, few queries have lists as well: all minima would be large
MOST_BEYOND = 512  # points beyond range; with more, points are streamed
CODED_BYTES = 1 << 30  # an Index makes codes if the points have at least this size,
CODED_WORTH = 1.5  # and at least this multiple of the size of their codes
LEAST_CODED = 16  # columns: few columns are no faster as codes
# Searches by codes of up to this many pairs are replayed as a CUDA graph: 2,048 queries among 10 million points take
# the device 6.6 ms, and the host 5 to 9 ms to launch step by step. Then most entries of a row's list, and most graphs.
CODED_REPLAYED = 1 << 36
CODED_REPLAYED_LIST = 4096
CODED_GRAPHS = 4
CODED_LEFT = (16, 64)  # rows of a retry after a first pass: if fewer are left, some are repeated
CODED_MULTIPROCESSORS = 160  # of a device for which lists are planned; with fewer, lists are shorter
CODED_BATCH = 8192  # most queries of a batch: the rows of one are read while the next one is screened

# Case: exact_cuda small, search-k10 on cuda. Chosen on: not recorded.
# Results are correct with any centre and scale (the bounds measure their effect); those of a sample are good enough.
CENTRE_ROWS = 8192
CENTRE_VALUES = 2**20  # fewer wide rows are sampled, to keep small searches fast,
CENTRE_FEWEST = 512  # but not fewer than this
CENTRE_PROGRAMS = 256  # programs that read the sample: two per multiprocessor of a large GPU
CENTRE_TILE = {"ROWS": 32, "COLUMNS": 32}
SETTLE_TILE = {"PARTS": 32, "COLUMNS": 128}  # one variant: a second one for few parts would not be compiled ahead

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
BYTES_SECONDS = 3e-3  # least seconds of a search that first tests for integers of one byte (0.05 ms if there are none)
BYTES_SAMPLE = 8192  # rows that are tested before all others
BYTES_LOOKED = 4  # rows that are tested first, in host memory; the launches for a sample take four times as long

# Case: exact_cuda hard-offset-1e3, hard-tight on cuda. Chosen on: not recorded.
# A search of at least PILOT_BATCHES batches first determines, on PILOT_ROWS rows, how many groups, at most WIDEST times
# the planned width, take the least time.
PILOT_BATCHES = 8
PILOT_ROWS = 1024
WIDEST = 8
WIDER = 4  # rows that were not proved at first are retried with this many times as many groups, short rows with more
SHORT_COLUMNS = 16  # of a row that is short
NEAR_KEPT = 2  # near groups of a contracted row, and members of these groups, that fit, as a multiple of the width
SEARCHED_AGAIN = 100.0  # default time of searching a row again, relative to refining its groups
RETRIES_TIMES = 3.0  # time of retries relative to their products: they write all minima, and there may be several
LEAST_SCRATCH = 1 << 25  # least scratch bytes for rows that are compared with all points
# Values that are compared in the time of another attempt: up to this many, rows are compared with all points. The
# selection of a pair takes as long as OF_PAIR more columns.
OF_ATTEMPT = 1 << 30
OF_PAIR = 96
LEAST_OF_SUBSETS = 1 << 15  # least points of a search among subsets; comparing all values of fewer takes little time

# Case: exact_cuda hard-offset-1e6, hard-tight on cuda. Chosen on: not recorded.
AS_BYTES_PRODUCTS = 1 << 34  # least products of unproved rows that are searched in int8, which requires packing
AS_BYTES_BESIDE = 3  # groups that are refined in addition to k: the row's own in a graph, and a few that tie
NEARBY_CENTRES = 64  # queries that a round takes as centres
NEARBY_ROWS = 32768  # form rows in memory at once: each has a distance to every centre
NEARBY_APART = 2.0  # least distance of a centre from other centres, relative to its reach; nearer centres are dropped
NEARBY_FARTHEST = 4.0  # largest distance of a query from its centre, relative to its reach
NEARBY_SHARE = 0.25  # largest share of the points in a neighbourhood
# Least values of pairs that a neighbourhood has to save, because its search takes some milliseconds: if all values
# would be compared otherwise, and if the points would be screened.
NEARBY_VALUES = 1 << 32
NEARBY_SCREEN = 1 << 40
NEARBY_OF_ROUND = 8  # least values that a round has to save, as a multiple of those of a neighbourhood
NEARBY_SAMPLE = 4096  # points by which are_inseparable decides

# Case: radius_cuda within-gauss-d128, within-sift-d128 on cuda. Chosen on: not recorded.
WITHIN_FIRST_ROWS = 1024  # rows of the first batch, which measures the lengths of lists: its lists have room for all
WITHIN_USUAL = 0.99  # share of the rows for which the length of lists is chosen
WITHIN_TOO_SHORT = 1 / 16  # if the lists of this share of a batch are too short, later lists are twice as long
# Listed groups, as a share of all points, from which on screening at the next precision costs less than refining them:
# the screen takes 0.016 ps per point and column, refining a listed group 8 to 32 times 4 bytes per column.
WITHIN_HARD = 1 / 512
WITHIN_FEWEST_HARD = 32
WITHIN_WORTH = 0.5  # the next precision is given up if it leaves more than this share of the groups

# Case: exact_cuda host-routes on cuda. Chosen on: not recorded.
# Members per slice of work, which take at most a millisecond, or a second if each member is a page read from disk, but
# longer than the start of a thread.
HOST_MEMBERS = 1 << 13
HOST_LEAST_MEMBERS = 1 << 9
CODES_LONG_SECONDS = 0.03  # the same for codes, whose Index is searched often
HOST_LONG_SECONDS = 1.0  # if the CPU needs longer, the device may answer rows, although it may have to compile kernels

# Not measured: bounds of memory.
COMPARED_ENTRIES = 1 << 22  # entries of lists that are ordered in one step
PACKED_AT_ONCE = 256 * MIB  # original rows that are on the device at once while "host_refine" packs the points
REFINE_SCRATCH_BYTES = 1 << 28  # of refine_groups, unless a single row needs more
FORM_VALUES = 2**24  # float64 values of form rows in memory at once

# Case: exact_cuda cold-graph on cuda. Chosen on: not recorded.
# The first level of a long search searches at least this many rows. Its kernels are compiled with those of the first
# attempt; compiling other kernels for fewer rows would take seconds, whereas these rows take less than a millisecond.
RETRIED = 512
