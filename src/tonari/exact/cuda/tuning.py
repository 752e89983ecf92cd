"""Tuned numbers of exact search on CUDA: they affect its speed, but no answer.

Each group of numbers begins with the benchmark cases that measure it, and the GPU that chose its values
(``python -m benchmarks tune``).
"""

from tonari.core.units import MIB

# Case: exact_cuda search-k10, graph-sift on cuda. Chosen on: not recorded.
# Programs of the screens by matrix products.
RESIDENT_PROGRAMS = 2  # programs that a multiprocessor runs at the same time
HOPPER_ROWS = 256  # queries per program of the kernel for Hopper
HOPPER_TILES = 4  # tiles of points that Hopper's kernel processes between two pauses of the matrix units
HOPPER_STAGES = 4  # tiles of points that Hopper's kernel buffers
MOST_ROUNDS = 4  # most rounds into which work is divided; a round fills all multiprocessors once
LEAST_BLOCKS = 4  # least blocks of points per program, so that its pipeline fills
UNEVEN = 5.0  # a list's segment has room for its expected entries plus this many standard deviations

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: not recorded.
# The screen of graphs (screens/mirrored.py).
MIRRORED_ROWS = 256  # rows of a tile if rows are streamed: a multiple of POINT_TILE
MIRRORED_STAGES = 4  # steps of columns that are buffered
MIRRORED_WARPS = 8  # warps of a program
LEAST_STREAMED = 1024  # streamed rows of at least this many bytes are faster if each product is computed once
NOTE_SLOTS = 64  # notes of a row that are moved to the lists of points in one step
NOTE_WARPS = 4  # warps of a program that moves notes
COMPARED_TILES = 128  # tiles of a batch whose errors are compared in one step
MIRRORED_BATCHES = 4  # fewest batches of a graph that computes each product once for both of its rows

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: H100.
# Samples for thresholds, and the costs by which they are chosen (screens/sampling.py).
SCREEN_COST = 1.0  # cost of screening one more point
SLOT_COST = 12.0  # cost of one more slot in a list
ODDS = 1e-4  # largest probability that a threshold is too low, or that a list is too short
LEAST_SAMPLE = 4096  # least points in a sample
LARGEST_MEAN = 100.0  # most nearest points in a sample, on average: more do not improve thresholds, and sums underflow

# Case: exact_cuda search-k10 on cuda. Chosen on: not recorded.
# When a screen makes lists, and how batches are scheduled.
HOPPER_BYTES = 256  # rows of this many bytes have a kernel for Hopper, which lists groups below a threshold
LEAST_ROWS = 512  # for fewer queries, all minima are written quickly, and the kernel that lists has too few programs
LEAST_STRIDE = 8  # least stride of a sample: screening a larger sample takes too much time
STRAGGLERS = 128  # if few rows may be unproved, this many are retried before the host knows which these are
IN_FLIGHT = 2  # batches in flight, few enough that Ctrl-C takes effect and progress is accurate

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: not recorded.
# Samples and batches of the screen of graphs.
NOTED_COST = 48.0  # cost of one more slot in a graph's list, which earlier batches fill by atomic operations
MIRRORED_LONGER = 2  # factor on the length of a graph's batches: screens are short, launches take as long as usual

# Case: exact_cuda search-d16, search-d32 on cuda. Chosen on: not recorded.
# Up to this many columns the first precision is "split": products are then a small part of the screen, and float16
# would leave many rows for a second precision. Bytes are exact in float16.
SPLIT_FIRST = 16

# Case: exact_cuda graph-960, graph-sift on cuda. Chosen on: not recorded.
# The screen of wide rows on Hopper (screens/wide_rows.py).
WIDE_ROWS = 64  # rows of a tile
WIDE_WARPS = 4  # warps of a program
WIDE_REGISTERS = 168  # registers per thread: with this many, three programs fit on a multiprocessor
WIDE_PROGRAMS = 2  # programs of a multiprocessor, if shared memory has room for LEAST_STAGES buffers of each; else 1
LEAST_STAGES = 3
MOST_STAGES = 5  # most buffers of a program
TALL = (128, 8, 240)  # rows, warps and registers of a tall tile: two warpgroups share the points, and one program fits
# Largest rows, in bytes, for tall tiles, which are faster for graphs of int8: products take half as long as with
# float16, but loading points takes as long.
TALL_TO = 1152

# Case: exact_cuda search-k10, search-k64 on cuda. Chosen on: not recorded.
# Programs that pack rows, choose groups, compute thresholds and certify answers.
SEGMENTS = 256  # segments of a list that a program reads at once: most lists have fewer, and so share a kernel
THRESHOLD_ROWS = 256  # rows per program that computes thresholds
THRESHOLD_SLOTS = 1024  # slots of a row's list that are read in one step
CERTIFIED_ROWS = 256  # rows per program that certifies answers
POINT_WARPS = 16  # warps of a program that packs a tile of points
QUERY_ROWS = 16  # queries that a program packs: fewer than points, so that small searches fill the GPU
QUERY_WARPS = 4  # warps of such a program

# Case: exact_cuda contracted-topics, contracted-graph-gist on cuda. Chosen on: not recorded.
# Searches of contracted rows in p coordinates (screens/contracted.py, attempts/contracted.py).
LIMIT_SLOTS = 1024  # slots of a row's list, or minima of a row, that are read in one step
LIMIT_MEMBERS = 128  # members whose contracted rows are compared in one step
LIMIT_COLUMNS = 32  # columns compared in one step: the first ones rule out most members
LIMIT_WARPS = 4  # warps of a program
LIMIT_FEW = 128  # most rows for which several programs share a row, to keep all multiprocessors busy
LIMIT_PARTS = 16  # programs that then share a row
LIMIT_ROWS = 256  # rows per program that computes limits
CONTRACTED_SECONDS = 5e-3  # least seconds of a search in all dimensions for which prepared points are contracted
CONTRACTED_WIDTH = 64  # groups refined per row at first if rows are contracted; searches fit the number to the data
FITTED_ROWS = 4096  # least queries for which the width is fitted
FEW_UNPROVED = 0.01  # largest share of unproved rows that are retried at the first precision
HOPELESS = 0.5  # if the largest width leaves this share of the rows unproved, all dimensions are screened
NEAREST = 10  # the k + max(k, NEAREST) nearest points in p coordinates are refined for the first k-th value
ROOMY = 64  # room for groups of a row in the last retry in p coordinates, as a multiple of the width
CONTRACTED_AGAIN = 1000.0  # time of searching a row in all dimensions, relative to refining its fewest groups
AT_ONCE = 3  # most batches that are joined into one if memory allows: each batch takes 3 ms to launch

# Not measured by a case, but by hand on an H100: 10,000 queries among a million points of 128 columns, whose noise
# leaves about ten rows unproved. The device searches them again in 0.2 ms, but in 1 to 1.5 ms if the host first waits
# to learn which rows these are, and then launches twenty kernels. Numbers of rows are those of tiles of the screen.
ROWS_AHEAD = (16, 64, 128)  # rows retried before the host knows which are unproved, if the last search left some
ROWS_AGAIN = 64  # rows that a replayed search retries, by kernels that are captured as a second graph

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Searches whose first attempt takes two launches (screens/few.py). They take about 15 µs in addition to the time for
# reading the packed points. The usual launches take 45 µs in addition, and two or three times the work on the host.
FEW_QUERIES = 4  # most queries that share one pass over the points, without matrix units
FEW_POINTS = 1 << 20  # most points: one program surveys all tiles, and reading more takes 85 µs and longer at d = 128
FEW_COLUMNS = 1 << 12  # most columns: each program of the screen keeps a packed copy of the queries, 2 MB per query
FEW_NEIGHBOURS = 32  # most neighbours: all candidates, 512 for this k, are compared with each other, in about 5 µs

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Shapes of the programs of these two launches (kernels/screens/few.py).
FEW_BLOCK = 128  # columns of a tile that are read at once: 8 loads of 16 bytes per thread
FEW_CHUNKS = 64  # chunks of minima from which a threshold is computed: at least as many as wanted groups
FEW_CHUNK = 32  # candidates whose values one program computes
FEW_RANKED = 32  # candidates that all others are compared with in one step
FEW_SCREEN_WARPS = 8  # warps of a program that screens
FEW_SCREEN_REGISTERS = 128  # registers per thread, so that FEW_PROGRAMS programs fit on a multiprocessor
FEW_PROGRAMS = 2  # programs that a multiprocessor runs at once; each of them is loading two tiles of 32 KiB
FEW_MOST_PROGRAMS = 512  # most programs on any device; each has a packed copy of the queries
FEW_WARPS = 4  # warps of a program of the second launch
FEW_REGISTERS = 255  # registers per thread: there are few programs, so each may use all registers that it needs
FEW_SURVEYED = 1024  # most tiles surveyed by FEW_WARPS warps; more tiles take twice as many warps

# Case: exact_cuda hard-copies, hard-copies-16 on cuda. Chosen on: not recorded.
# The search for copies of rows that no answer can contain (rows/copies.py).
COPIES_LEFT = 256  # if a first level leaves this many rows unproved, copies of points are looked for
COPIES_SECONDS = 0.1  # least seconds of a search that looks for copies of rows first, in a few milliseconds
COPIED_ROWS = 16  # rows per program that hashes or compares rows
COPIED_COLUMNS = 64  # columns that it reads in one step
COPIED_WARPS = 4  # warps of such a program

# Not measured.
# Exact values of all pairs, lists of given points, and memory of past searches.
DENSE_POINTS = 64  # points per program that computes values of all pairs
DENSE_ROWS = 32  # most queries per program
DENSE_LANES = 2  # lanes per thread
LEAST_SLICE = 1 << 14  # least points of a slice; if memory is short, blocks of queries are shortened first
LISTED_WIDENING = 1.25  # length of the longest list of a launch, relative to the shortest
REMEMBERED = 64  # most searches remembered before they repeat, and most plans whose searches left unproved rows

# Not measured: bounds of memory.
MINIMA_BYTES = 2048 * MIB  # most memory for the minima of a batch of queries: longer batches are no faster
LEAST_BATCHES = 4  # least batches of queries if the CPU refines one batch while the next one is screened
LISTED_ENTRIES = 1 << 26  # most entries of padded lists on the device
WITHIN_ROWS = 1 << 16  # most rows of a batch of a radius search, which takes some tens of ms
WITHIN_ROW_BYTES = 128  # bytes of a row's limit, threshold, counts and positions
WITHIN_SCRATCH_BYTES = 1 << 28  # memory for the values and ids of candidates that are refined in one launch
MOST_GRAPHS = 8  # most searches that are kept as CUDA graphs
HELD_BYTES = 1 << 29  # most planned bytes of these graphs on all devices: at most the memory that plans leave unused

# Case: exact_cuda search-k10 on cuda. Chosen on: H200.
# The largest CUDA graph of a repeated search, in bytes. A search of 10,000 queries among a million prepared points of
# 128 columns has a graph of 0.27 GB. Without it, the search takes 6.5 ms, including 1.2 ms for launches. In longer
# searches, launches are negligible.
LARGEST_BYTES = 3 << 27
LONGEST_SECONDS = 0.1  # longest search that is kept as a graph

# Case: exact_cuda contracted-topics, contracted-patches on cuda. Chosen on: not recorded.
# The directions of a contraction, and whether it is worth its time.
FORM_DIMS = (32, 64, 128, 256)  # numbers of coordinates that a pilot compares
FORM_PILOT_ROWS = 128  # pilot rows
FORM_SECONDS = 0.06  # seconds of a pilot
FORM_SHARE = 0.03  # largest share of a whole search that a pilot may take
FORM_WORTH = 0.7  # largest seconds of a contraction, relative to those of all dimensions
FORM_MOST_LEFT = 512  # most candidates of a row: a search can widen its lists to this length (attempts/contracted.py)
FORM_NEARLY_ALL = 0.95  # share of the rows that must have at most that many candidates
DIRECTIONS_VALUES = 2**25  # most values of the sample from which directions are computed
DIRECTIONS_ROWS = 32768  # most rows of this sample
ITERATIONS = 8  # iterations of the subspace iteration: its result need not have converged
FORM_ROWS = 16  # rows per program that writes form rows or rounds contracted ones
FORM_WARPS = 4  # warps of such a program
FORM_COLUMNS = 64  # columns that it rounds in one step

# Not measured by a case. Candidates were counted by hand, for the 10 nearest of 100,000 rows of SIFT in 64 coordinates.
# Codes (rows/codes.py). A code of 127 stands for CODE_MARGIN times the largest element of a sample, or CODE_MARGIN x
# CODE_FARTHEST times the element that CODE_NEARLY_ALL of its rows do not exceed, if that is less.
CODE_COLUMNS = (123, 61)  # coordinates: 128 bytes with five for the squared length; if memory is short, 64 with three
CODE_FARTHEST = 4.0
CODE_NEARLY_ALL = 0.999
CODE_MARGIN = 1.25
CODE_ROWS = 16  # rows per program that rounds
FOLDED_HOPPER = True  # whether the kernel for Hopper, whose products do not wait for the maxima, makes the lists
FOLDED_ROWS = 128  # queries of a tile of the other kernel
FOLDED_WARPS = 4  # warps of a program
FOLDED_STAGES = 3  # buffers of points
FOLDED_PROGRAMS = 2  # programs of a multiprocessor
CODED_WIDTH = 512  # near points per row at first, with room for twice as many; later searches may double it
CODED_WIDEST = 2  # most near points, as a multiple of CODED_WIDTH
CODED_READ = 128  # rows that a query is expected to read from host memory
CODED_GROUPS = 8  # near groups of a row, as a multiple of its near points
CODED_LISTED = 1 << 26  # with this many points, even a few queries get lists, because all minima would be large
MOST_BEYOND = 512  # most points beyond range; with more, points are streamed
CODED_BYTES = 1 << 30  # least bytes of points for which an Index makes codes
CODED_WORTH = 1.5  # least size of points for which it makes codes, relative to these codes
LEAST_CODED = 16  # least columns of coded rows: rows of fewer columns are no faster as codes
# Searches by codes of up to this many pairs are replayed as a CUDA graph: 2,048 queries among 10 million points take
# the device 6.6 ms, and the host 5 to 9 ms to launch step by step.
CODED_REPLAYED = 1 << 36
CODED_REPLAYED_LIST = 4096  # most entries of a row's list
CODED_GRAPHS = 4  # most graphs
CODED_LEFT = (16, 64)  # numbers of rows of a first retry: if fewer rows are unproved, some are repeated
CODED_MULTIPROCESSORS = 160  # memory of lists is planned for this many multiprocessors; with fewer, lists are shorter
CODED_BATCH = 8192  # most queries of a batch: the rows of one batch are read while the next one is screened

# Case: exact_cuda small, search-k10 on cuda. Chosen on: not recorded.
# Results are correct with any centre and scale, because error bounds are measured; so a sample determines them.
CENTRE_ROWS = 8192  # most rows of the sample
CENTRE_VALUES = 2**20  # most values of the sample, so that small searches among wide rows stay fast
CENTRE_FEWEST = 512  # least rows of the sample, however wide
CENTRE_PROGRAMS = 256  # programs that read the sample: two per multiprocessor of a large GPU
CENTRE_TILE = {"ROWS": 32, "COLUMNS": 32}  # rows and columns of a step
SETTLE_TILE = {"PARTS": 32, "COLUMNS": 128}  # for few parts, too: a second size would not be compiled ahead

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: not recorded.
# Programs that refine candidates. By default, ptxas uses fewer registers and waits for the loads of every step. With
# REFINE_REGISTERS, it issues the loads of four steps at once.
REFINE_UNIT = 4  # most elements per load: with 16 columns per step, four threads share a row
REFINE_WARPS = 4  # most warps of a program
WARP_CANDIDATES = 16  # candidates of a warp: two rows per thread, with four lanes each
DIVIDING_CANDIDATES = 8  # candidates of a warp for metrics whose terms divide, which takes more registers
REFINE_REGISTERS = 96  # registers per thread for aligned rows
CENTRED_REGISTERS = 128  # registers per thread for metrics that subtract means

# Case: exact_cuda search-k10-half, search-k10-noise on cuda. Chosen on: not recorded.
# The test for integers of one byte (rows/bytes.py).
BYTES_SECONDS = 3e-3  # least seconds of a search that first tests for integers of one byte (0.05 ms if there are none)
BYTES_SAMPLE = 8192  # rows that are tested before all others
BYTES_LOOKED = 4  # rows that the host tests first, in a quarter of the time that launches for a sample take

# Case: exact_cuda hard-offset-1e3, hard-tight on cuda. Chosen on: not recorded.
# The number of groups refined per row (screens/widths.py). A search of at least PILOT_BATCHES batches first determines
# on PILOT_ROWS rows which number takes the least time, up to WIDEST times the planned number.
PILOT_BATCHES = 8
PILOT_ROWS = 1024
WIDEST = 8
WIDER = 4  # unproved rows are retried with this many times as many groups; short rows with more
SHORT_COLUMNS = 16  # most columns of a short row
NEAR_KEPT = 2  # room for near groups of a contracted row, and for members of these groups, as a multiple of the width
SEARCHED_AGAIN = 100.0  # default time of searching a row again, relative to refining its groups
RETRIES_TIMES = 3.0  # time of retries relative to their products: they write all minima, and there may be several
LEAST_SCRATCH = 1 << 25  # least scratch bytes for rows that are compared with all points
# If unproved rows have at most OF_ATTEMPT values of pairs, computing these is as fast as another attempt. The selection
# of a pair counts as OF_PAIR more columns.
OF_ATTEMPT = 1 << 30
OF_PAIR = 96
LEAST_OF_SUBSETS = 1 << 15  # least points of a search among subsets; comparing all values of fewer takes little time

# Case: exact_cuda hard-offset-1e6, hard-tight on cuda. Chosen on: not recorded.
# Retries in int8 (attempts/as_bytes.py) and in neighbourhoods (attempts/nearby.py).
AS_BYTES_PRODUCTS = 1 << 34  # least values of pairs left for a retry in int8, for which all points must be packed
AS_BYTES_BESIDE = 3  # groups that are refined in addition to k: the row's own in a graph, and a few that tie
NEARBY_CENTRES = 64  # queries that a round takes as centres
NEARBY_ROWS = 32768  # form rows in memory at once: each has a distance to every centre
NEARBY_APART = 2.0  # least distance between centres, relative to the distance of a centre's k-th known neighbour
NEARBY_FARTHEST = 4.0  # largest distance of a query from its centre, relative to that of its k-th known neighbour
NEARBY_SHARE = 0.25  # largest share of the points in a neighbourhood
# A neighbourhood has to save at least this many values of pairs, because its search takes some milliseconds.
NEARBY_VALUES = 1 << 32  # if exact values of all points are the alternative
NEARBY_SCREEN = 1 << 40  # if a screen of all points is the alternative
NEARBY_OF_ROUND = 8  # least values that a round has to save, as a multiple of those of a neighbourhood
NEARBY_SAMPLE = 4096  # points by which are_inseparable decides

# Case: radius_cuda within-gauss-d128, within-sift-d128 on cuda. Chosen on: not recorded.
# Searches within a radius (attempts/within.py).
WITHIN_FIRST_ROWS = 1024  # rows of the first batch, which measures the lengths of lists: its lists have room for all
WITHIN_USUAL = 0.99  # share of the rows for which the length of lists is chosen
WITHIN_TOO_SHORT = 1 / 16  # if the lists of this share of a batch are too short, later lists are twice as long
# If a row lists more groups than this share of the points, a screen at the next precision costs less than refining
# them: the screen takes 0.016 ps per point and column, and refining a group reads 8 to 32 times 4 bytes per column.
WITHIN_HARD = 1 / 512
WITHIN_FEWEST_HARD = 32  # fewest listed groups of such a row
WITHIN_WORTH = 0.5  # the next precision is given up if it leaves more than this share of the groups

# Case: exact_cuda host-routes on cuda. Chosen on: not recorded.
# Candidates that a thread of the CPU refines in one task. They take at most a millisecond, or a second if each is a
# page read from disk. HOST_LEAST_MEMBERS take longer than starting a thread.
HOST_MEMBERS = 1 << 13
HOST_LEAST_MEMBERS = 1 << 9
CODES_LONG_SECONDS = 0.03  # HOST_LONG_SECONDS of searches by codes, whose Index is searched often
HOST_LONG_SECONDS = 1.0  # least seconds of the CPU for which the device may take over, although it may compile kernels

# Not measured: bounds of memory.
COMPARED_ENTRIES = 1 << 22  # entries of lists that are ordered in one step
PACKED_AT_ONCE = 256 * MIB  # original rows that are on the device at once while "host_refine" packs the points
REFINE_SCRATCH_BYTES = 1 << 28  # scratch memory of refine_groups, unless a single row needs more
FORM_VALUES = 2**24  # float64 values of form rows in memory at once

# Case: exact_cuda cold-graph on cuda. Chosen on: not recorded.
# The first retry of a long search takes at least this many rows: less than a millisecond, by kernels that are compiled
# with those of the first attempt. Compiling other kernels for fewer rows would take seconds.
RETRIED = 512
