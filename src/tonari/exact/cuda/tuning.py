"""Tuned numbers of exact search on CUDA: they affect its speed, but no answer.

Each group of numbers begins with the benchmark cases that measure it, and the GPU that chose its values
(``python -m benchmarks tune``).
"""

from tonari.core.units import MIB

# Case: exact_cuda search-k10, graph-sift on cuda. Chosen on: an unrecorded machine.
# Programs of the screens by matrix products.
RESIDENT_PROGRAMS = 2  # programs that a multiprocessor runs at once if queries stay in shared memory
HOPPER_ROWS = 256  # queries per program of the kernel for Hopper (all_minima_hopper.py)
HOPPER_TILES = 4  # tiles of points that the kernel for Hopper processes between two pauses of the matrix units
HOPPER_STAGES = 4  # tiles of points that the kernel for Hopper buffers
MOST_ROUNDS = 4  # maximum number of rounds into which work is divided; a round fills all multiprocessors once
LEAST_BLOCKS = 4  # minimum number of blocks of points per program, so that its pipeline fills
UNEVEN = 5.0  # a segment of a list has slots for its expected entries plus this many standard deviations

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: an unrecorded machine.
# The screen of graphs (screens/mirrored.py).
MIRRORED_ROWS = 256  # rows per tile if rows are streamed like points; a multiple of POINT_TILE
MIRRORED_STAGES = 4  # number of steps of columns that a program of a graph's screen buffers
MIRRORED_WARPS = 8  # warps of a program of a graph's screen
LEAST_STREAMED = 1024  # minimum bytes of streamed packed rows from which computing each product once is faster
NOTE_SLOTS = 64  # number of a row's notes that a program moves to the lists of points in one step
NOTE_WARPS = 4  # warps of a program that moves notes
COMPARED_TILES = 128  # tiles of a batch whose error bounds are compared in one step to compute limits
MIRRORED_BATCHES = 4  # minimum number of batches in a graph that computes each product once for both of its rows

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: H100.
# Samples for thresholds, and the costs by which they are chosen (screens/sampling.py).
SCREEN_COST = 1.0  # cost of screening one more point of a sample
SLOT_COST = 12.0  # cost of one more slot in a row's list
ODDS = 1e-4  # maximum probability that a threshold is too low, and that a list is too short
LEAST_SAMPLE = 4096  # minimum number of points in a sample
LARGEST_MEAN = 100.0  # maximum expected number of wanted points in a sample: with more, sums underflow for no gain

# Case: exact_cuda search-k10 on cuda. Chosen on: an unrecorded machine.
# When a screen makes lists, and how batches are scheduled.
HOPPER_BYTES = 256  # bytes of the packed rows for which Hopper has a kernel that lists groups below a threshold
LEAST_ROWS = 512  # minimum number of queries for lists: minima of fewer queries are written quickly, by more programs
LEAST_STRIDE = 8  # minimum stride of a sample: screening more than every 8th point takes too long
STRAGGLERS = 128  # number of rows retried before the host knows which are unproved, if few rows may be unproved
IN_FLIGHT = 2  # maximum number of batches in flight: with more, Ctrl-C and the progress bar would lag behind

# Case: exact_cuda graph-sift, graph-gauss on cuda. Chosen on: an unrecorded machine.
# Samples and batches of the screen of graphs.
NOTED_COST = 48.0  # cost of one more slot in a list of a graph, which earlier batches fill by atomic operations
MIRRORED_LONGER = 2  # factor by which batches of a graph are longer: its screens are short compared with their launches

# Case: exact_cuda search-d16, search-d32 on cuda. Chosen on: an unrecorded machine.
# Up to this many columns the first precision is "split": products are then a small part of the screen, and float16
# would leave many rows for a second precision. 8-bit integers are exact in float16.
SPLIT_FIRST = 16

# Case: exact_cuda graph-960, graph-sift on cuda. Chosen on: an unrecorded machine.
# The screen of wide rows on Hopper (screens/wide_rows.py).
WIDE_ROWS = 64  # queries in a tile of the screen of wide rows
WIDE_WARPS = 4  # warps of a program of the screen of wide rows
WIDE_REGISTERS = 168  # registers per thread of the screen of wide rows: three programs fit on a multiprocessor
WIDE_PROGRAMS = 2  # programs per multiprocessor if the LEAST_STAGES buffers of each fit into shared memory; else 1
LEAST_STAGES = 3
MOST_STAGES = 5  # maximum number of buffers of points per program of the screen of wide rows
TALL = (128, 8, 240)  # rows, warps and registers of a tall tile: two warpgroups share its points, in a single program
# Maximum bytes of a packed row for tall tiles, which are faster for graphs in int8: products take half as long as in
# float16, but points take as long to load.
TALL_TO = 1152

# Case: exact_cuda search-k10, search-k64 on cuda. Chosen on: an unrecorded machine.
# Programs that pack rows, choose groups, compute thresholds and certify answers.
SEGMENTS = 256  # segments of a list that a program reads at once: most lists have fewer, and so share one kernel
THRESHOLD_ROWS = 256  # rows per program that computes thresholds
THRESHOLD_SLOTS = 1024  # slots of a row's list that are read in one step to choose groups
CERTIFIED_ROWS = 256  # rows per program that certifies answers
POINT_WARPS = 16  # warps of a program that packs a tile of points
QUERY_ROWS = 16  # queries that a program packs: fewer than points, so that small searches also fill the GPU
QUERY_WARPS = 4  # warps of a program that packs queries

# Case: exact_cuda contracted-topics, contracted-graph-gist on cuda. Chosen on: an unrecorded machine.
# Searches of contracted rows in p coordinates (screens/contracted.py, attempts/contracted.py).
LIMIT_SLOTS = 1024  # slots of a row's list, or minima of a row, that are compared with limits in one step
LIMIT_MEMBERS = 128  # members of near groups whose contracted rows are compared with limits in one step
LIMIT_COLUMNS = 32  # columns of contracted rows that are compared in one step: the first ones rule out most members
LIMIT_WARPS = 4  # warps of a program that finds groups or members within limits
LIMIT_FEW = 128  # maximum number of rows for which several programs share a row, to keep all multiprocessors busy
LIMIT_PARTS = 16  # number of programs that share a row if there are at most LIMIT_FEW rows
LIMIT_ROWS = 256  # rows per program that computes limits
CONTRACTED_SECONDS = 5e-3  # minimum seconds of a search in all dimensions for which prepared points are contracted
CONTRACTED_WIDTH = 64  # groups refined per row at first if rows are contracted; a search fits this number to its data
FITTED_ROWS = 4096  # minimum number of queries for which the width (groups refined per row) is fitted to the data
FEW_UNPROVED = 0.01  # maximum share of unproved rows with which retries start at the first precision, not the second
HOPELESS = 0.5  # if the largest width leaves this share of the rows unproved, searches screen all dimensions
NEAREST = 10  # the k + max(k, NEAREST) points nearest in p coordinates are refined first, to bound the k-th value
ROOMY = 64  # maximum number of groups per row at the last retry in p coordinates, as a multiple of the width
CONTRACTED_AGAIN = 1000.0  # time to search a row in all dimensions, relative to refining the minimum of groups
AT_ONCE = 3  # maximum number of batches joined into one if memory allows: each batch takes 3 ms to launch

# Not measured by a case, but by hand on an H100: 10,000 queries among a million points of 128 columns, whose noise
# leaves about ten rows unproved. The device searches these rows again in 0.2 ms, but in 1 to 1.5 ms if the host
# first waits to learn which rows they are, and then launches twenty kernels. All numbers fill tiles of the screen.
ROWS_AHEAD = (16, 64, 128)  # possible numbers of rows to retry before the host knows which rows are unproved
ROWS_AGAIN = 64  # number of rows that a replayed search retries, by kernels captured as a second CUDA graph

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Searches whose first attempt takes two launches (screens/few.py). They take about 15 µs longer than reading
# the packed points. The usual launches take 45 µs longer than reading them, and two or three times the host's work.
FEW_QUERIES = 4  # maximum number of queries that share a pass over the points without matrix units (few.py)
FEW_POINTS = 1 << 20  # maximum number of points: a program examines all tiles; reading more takes over 85 µs at d = 128
FEW_COLUMNS = 1 << 12  # maximum number of columns: the programs of the screen have copies of each query, 2 MB in all
FEW_NEIGHBOURS = 32  # maximum k: all candidates, 512 for this k, are compared with each other, in about 5 µs

# Case: exact_cuda one-query on cuda. Chosen on: H100.
# Shapes of the programs of the two launches for few queries (kernels/screens/few.py, few_finish.py).
FEW_BLOCK = 128  # columns of a tile that a program of few.py reads at once: 8 loads of 16 bytes per thread
FEW_CHUNKS = 64  # number of chunks of minima; the threshold of few_finish.py comes from their lowest minima
FEW_CHUNK = 32  # candidates whose values one program of few_finish.py computes
FEW_RANKED = 32  # candidates that few_finish.py compares with all other candidates in one step
FEW_SCREEN_WARPS = 8  # warps of a program of few.py, the screen
FEW_SCREEN_REGISTERS = 128  # registers per thread of the screen, so that FEW_PROGRAMS programs fit on a multiprocessor
FEW_PROGRAMS = 2  # screening programs per multiprocessor; each of them is loading two tiles of 32 KiB
FEW_MOST_PROGRAMS = 512  # maximum number of screening programs on any device; each has a packed copy of the queries
FEW_WARPS = 4  # warps of a program of few_finish.py
FEW_REGISTERS = 255  # registers per thread of few_finish.py: programs are few, so each may use all that it needs
FEW_SURVEYED = 1024  # maximum number of tiles for FEW_WARPS warps; more tiles are surveyed by twice as many warps

# Case: exact_cuda hard-copies, hard-copies-16 on cuda. Chosen on: an unrecorded machine.
# The search for duplicate rows that no answer can contain (rows/copies.py).
COPIES_LEFT = 256  # minimum number of rows left unproved by the first level for a search for duplicate points
COPIES_SECONDS = 0.1  # minimum seconds of a search that first spends a few milliseconds on finding duplicate rows
COPIED_ROWS = 16  # rows per program that hashes or compares rows
COPIED_COLUMNS = 64  # columns that a program reads in one step to hash or compare rows
COPIED_WARPS = 4  # warps of a program that hashes or compares rows

# Not measured.
# Exact values of all pairs, lists of given points, and memory of past searches.
DENSE_POINTS = 64  # points per program that computes values of all pairs
DENSE_ROWS = 32  # maximum number of queries per program that computes values of all pairs
DENSE_LANES = 2  # lanes (partial sums) per thread of a program that computes values of all pairs
LEAST_SLICE = 1 << 14  # minimum number of points in a slice; if memory is short, blocks of queries are shortened first
LISTED_WIDENING = 1.25  # maximum ratio of the longest to the shortest list that share a launch
REMEMBERED = 64  # maximum number of remembered searches, and of plans whose numbers of unproved rows are remembered

# Not measured: bounds of memory.
MINIMA_BYTES = 2048 * MIB  # maximum memory for the minima of a batch of queries: longer batches are no faster
LEAST_BATCHES = 4  # minimum number of batches if the CPU refines one batch while the next one is screened
LISTED_ENTRIES = 1 << 26  # maximum number of entries in padded lists on the device
WITHIN_ROWS = 1 << 16  # maximum number of queries in a batch of a radius search, which takes some tens of ms
WITHIN_ROW_BYTES = 128  # bytes per query of a radius search, for its limit, threshold, counts and positions
WITHIN_SCRATCH_BYTES = 1 << 28  # memory for the values and ids of candidates that are refined in one launch
MOST_GRAPHS = 8  # maximum number of searches that are stored as CUDA graphs
HELD_BYTES = 1 << 29  # maximum planned bytes of all stored CUDA graphs: at most the memory that plans leave unused

# Case: exact_cuda search-k10 on cuda. Chosen on: H200.
# Maximum bytes of the CUDA graph of a repeated search. A search of 10,000 queries among a million prepared points of
# 128 columns has a graph of 0.27 GB. Without it, the search takes 6.5 ms, including 1.2 ms for launches. In longer
# searches, launches are negligible.
LARGEST_BYTES = 3 << 27
LONGEST_SECONDS = 0.1  # maximum seconds of a search that is stored as a CUDA graph

# Case: exact_cuda contracted-topics, contracted-patches on cuda. Chosen on: an unrecorded machine.
# The directions of a contraction, and whether it is worth its time.
FORM_DIMS = (32, 64, 128, 256)  # numbers of coordinates among which a pilot chooses
FORM_PILOT_ROWS = 128  # pilot rows: rows that a pilot compares with all points to choose the coordinates
FORM_SECONDS = 0.06  # expected seconds of a pilot that chooses the number of coordinates
FORM_SHARE = 0.03  # maximum share of a whole search that a pilot may take
FORM_WORTH = 0.7  # maximum time of a search with a contraction, relative to a search in all dimensions
FORM_MOST_LEFT = 512  # maximum candidates of a row; searches can lengthen lists to this size (attempts/contracted.py)
FORM_NEARLY_ALL = 0.95  # share of the pilot rows that must have at most FORM_MOST_LEFT candidates
DIRECTIONS_VALUES = 2**25  # maximum number of values in the sample for principal directions
DIRECTIONS_ROWS = 32768  # maximum number of rows in the sample for principal directions
ITERATIONS = 8  # iterations that compute directions: they need not have converged
FORM_ROWS = 16  # rows per program that writes form rows (rows/form.py) or rounds contracted rows
FORM_WARPS = 4  # warps of a program that writes form rows or rounds contracted rows
FORM_COLUMNS = 64  # columns that a program rounds in one step to contract rows

# Not measured by a case. Candidates were counted by hand, for the 10 nearest of 100,000 rows of SIFT in 64 coordinates.
# Codes (rows/codes.py). A code of 127 stands for CODE_MARGIN times the smaller of two values: the largest element of a
# sample, and CODE_FARTHEST times the element that a share CODE_NEARLY_ALL of the sample's rows do not exceed.
CODE_COLUMNS = (123, 61)  # coordinates in a code of 128 bytes or, if memory is short, 64 bytes; others are its length
CODE_FARTHEST = 4.0
CODE_NEARLY_ALL = 0.999
CODE_MARGIN = 1.25
CODE_ROWS = 16  # rows per program that rounds rows to codes
FOLDED_HOPPER = True  # whether, on Hopper, a kernel whose products do not wait for the maxima makes the lists of codes
FOLDED_ROWS = 128  # queries in a tile of the kernel for codes on other devices than Hopper (coded.py)
FOLDED_WARPS = 4  # warps of a program of coded.py
FOLDED_STAGES = 3  # buffers of points of a program of coded.py
FOLDED_PROGRAMS = 2  # programs of coded.py that a multiprocessor runs at once
CODED_WIDTH = 512  # near points per row at first, with room for twice as many; later searches may double the number
CODED_WIDEST = 2  # maximum number of near points, as a multiple of CODED_WIDTH
CODED_READ = 128  # number of rows that a query is expected to read from host memory
CODED_GROUPS = 8  # near groups of a row, as a multiple of its near points
CODED_LISTED = 1 << 26  # from this number of points on, even a few queries get lists, because all minima would be large
MOST_BEYOND = 512  # maximum number of points beyond the range of codes; with more, points are streamed
CODED_BYTES = 1 << 30  # minimum bytes of points for which an Index makes codes
CODED_WORTH = 1.5  # minimum bytes of points for which an Index makes codes, relative to the bytes of the codes
LEAST_CODED = 16  # minimum number of columns of rows that are coded: shorter rows are no faster as codes
# Batches of up to this many pairs are replayed as a CUDA graph: 2,048 queries among 10 million points take
# the device 6.6 ms, and the host 5 to 9 ms to launch step by step.
CODED_REPLAYED = 1 << 36
CODED_REPLAYED_LIST = 4096  # maximum number of entries of a row's list in a replayed batch
CODED_GRAPHS = 4  # maximum number of CUDA graphs of batches that are stored for the same coded points
CODED_LEFT = (16, 64)  # possible numbers of rows of a first retry: if fewer rows are unproved, some are repeated
CODED_MULTIPROCESSORS = 160  # memory for lists is planned for this many multiprocessors; with fewer, lists are shorter
CODED_BATCH = 8192  # maximum number of queries in a batch: its rows are read while the next batch is screened

# Case: exact_cuda small, search-k10 on cuda. Chosen on: an unrecorded machine.
# Results are correct with any centre and scale, because error bounds are measured. A sample is therefore enough to
# determine them.
CENTRE_ROWS = 8192  # maximum number of rows in the sample that determines centre and scale
CENTRE_VALUES = 2**20  # maximum number of values in the sample for centre and scale, so that small searches stay fast
CENTRE_FEWEST = 512  # minimum number of rows in the sample for centre and scale, however wide they are
CENTRE_PROGRAMS = 256  # programs that read the sample for centre and scale: two per multiprocessor of a large GPU
CENTRE_TILE = {"ROWS": 32, "COLUMNS": 32}  # rows and columns of the sample that a program adds in one step
SETTLE_TILE = {"PARTS": 32, "COLUMNS": 128}  # partial sums and columns that are added in one step

# Case: exact_cuda search-k10, search-k256 on cuda. Chosen on: an unrecorded machine.
# Programs that refine candidates. By default, the code of ptxas uses fewer registers, but waits for the loads of every
# step. With REFINE_REGISTERS, it issues the loads of four steps at once.
REFINE_UNIT = 4  # maximum number of elements per load of a row: with 16 columns per step, four threads share a row
REFINE_WARPS = 4  # maximum number of warps of a program that refines candidates
WARP_CANDIDATES = 16  # candidates that a warp refines: two rows per thread, with four lanes (partial sums) each
DIVIDING_CANDIDATES = 8  # candidates that a warp refines if the metric's terms divide, which takes more registers
REFINE_REGISTERS = 96  # registers per thread of programs that refine aligned rows
CENTRED_REGISTERS = 128  # registers per thread of programs that refine by metrics that subtract means

# Case: exact_cuda search-k10-half, search-k10-noise on cuda. Chosen on: an unrecorded machine.
# The test for integers of one byte (rows/bytes.py).
BYTES_SECONDS = 3e-3  # minimum seconds of a search that first tests for 8-bit integers, which often takes 0.05 ms
BYTES_SAMPLE = 8192  # rows in the sample that is tested for 8-bit integers before all rows are packed
BYTES_LOOKED = 4  # rows that the host tests for 8-bit integers before a sample is tested, which takes 4 times as long

# Case: exact_cuda hard-offset-1e3, hard-tight on cuda. Chosen on: an unrecorded machine.
# The number of groups refined per row (screens/widths.py). A search of at least PILOT_BATCHES batches first determines
# on PILOT_ROWS rows which number takes the least time, up to WIDEST times the planned number.
PILOT_BATCHES = 8
PILOT_ROWS = 1024
WIDEST = 8
WIDER = 4  # factor by which a retry refines more groups per row than the attempt before; for short rows it is larger
SHORT_COLUMNS = 16  # for rows of d columns, WIDER is multiplied by SHORT_COLUMNS // d, limited to the range from 1 to 4
NEAR_KEPT = 2  # list entries for near groups of a contracted row, and for near points, per group that is refined
SEARCHED_AGAIN = 100.0  # default time of searching a row again, as a multiple of the time of refining its groups
RETRIES_TIMES = 3.0  # factor on the time of a retry's products, as all minima are written, and more retries may follow
LEAST_SCRATCH = 1 << 25  # minimum scratch bytes for rows that are compared with all points
# Unproved rows are compared with all points if this takes at most OF_ATTEMPT values (pairs x columns), which is as fast
# as another attempt. Selecting from the pairs takes as long as OF_PAIR more columns.
OF_ATTEMPT = 1 << 30
OF_PAIR = 96
LEAST_OF_SUBSETS = 1 << 15  # minimum number of points for searches among subsets; fewer are compared exactly

# Case: exact_cuda hard-offset-1e6, hard-tight on cuda. Chosen on: an unrecorded machine.
# Retries in int8 (attempts/as_bytes.py) and in neighbourhoods (attempts/retries/nearby.py).
AS_BYTES_PRODUCTS = 1 << 34  # minimum number of values (unproved rows x points x columns) for a retry in int8
AS_BYTES_BESIDE = 3  # groups that int8 refines in addition to k: that of the row itself in a graph, and a few with ties
NEARBY_CENTRES = 64  # number of queries that a round tries as centres
NEARBY_ROWS = 32768  # form rows (rows/form.py) in memory at once, each with its distances from all centres
NEARBY_APART = 2.0  # minimum distance between centres, relative to the distance of a centre's k-th known neighbour
NEARBY_FARTHEST = 4.0  # maximum distance of a query from its centre, relative to that of its k-th known neighbour
NEARBY_SHARE = 0.25  # maximum share of the points in a neighbourhood
# A search of a neighbourhood takes some milliseconds, so it must save many values (pairs x columns).
NEARBY_VALUES = 1 << 32  # minimum number of values to save if otherwise all exact values are computed
NEARBY_SCREEN = 1 << 40  # minimum number of values to save if otherwise all points are screened
NEARBY_OF_ROUND = 8  # a round must save this many times the values that a neighbourhood must save
NEARBY_SAMPLE = 4096  # number of points in the sample of are_inseparable (attempts/retries/nearby.py)

# Case: radius_cuda within-gauss-d128, within-sift-d128 on cuda. Chosen on: an unrecorded machine.
# Searches within a radius (attempts/within.py).
WITHIN_FIRST_ROWS = 1024  # queries of the first batch, which measures the lengths of lists with room for all groups
WITHIN_USUAL = 0.99  # share of the first batch's rows whose lists must fit into the length chosen for later batches
WITHIN_TOO_SHORT = 1 / 16  # if this share of a batch's lists are too short, later lists are twice as long
# If a row lists more groups than this share of the points, a screen at the next precision costs less than refining
# them: the screen takes 0.016 ps per point and column, and refining a group reads 8 to 32 times 4 bytes per column.
WITHIN_HARD = 1 / 512
WITHIN_FEWEST_HARD = 32  # minimum number of groups that a row lists if it is screened again at the next precision
WITHIN_WORTH = 0.5  # maximum share of a long list's groups that the next precision may leave, to be used again

# Case: exact_cuda host-routes on cuda. Chosen on: an unrecorded machine.
# HOST_MEMBERS is the number of candidates that a thread of the CPU refines in one task: they take at most a
# millisecond, or a second if each is read from disk. HOST_LEAST_MEMBERS candidates take longer than starting a thread.
HOST_MEMBERS = 1 << 13
HOST_LEAST_MEMBERS = 1 << 9
CODES_LONG_SECONDS = 0.03  # HOST_LONG_SECONDS for searches by codes, which are repeated more often
HOST_LONG_SECONDS = 1.0  # maximum CPU seconds; longer work is left to the device, which may have to compile kernels

# Not measured: bounds of memory.
COMPARED_ENTRIES = 1 << 22  # entries of neighbour lists that are ordered in one step
PACKED_AT_ONCE = 256 * MIB  # bytes of original rows that are on the device at once while "host_refine" packs the points
REFINE_SCRATCH_BYTES = 1 << 28  # scratch memory of refine_groups, except that a single row may need more
FORM_VALUES = 2**24  # float64 values of form rows in memory at once

# Case: exact_cuda cold-graph on cuda. Chosen on: an unrecorded machine.
# The first retry of a long search takes at least this many rows: less than a millisecond, by kernels that are compiled
# with those of the first attempt. Compiling other kernels for fewer rows would take seconds.
RETRIED = 512
