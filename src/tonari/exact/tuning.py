"""Tuned numbers of exact search on the CPU: they affect its speed, but no answer.

Each group of numbers begins with the benchmark cases that measure it, and the machine that chose its values. Brackets
hold the values that are worth trying (``python -m benchmarks tune``).
"""

from tonari.core.units import MIB

# Case: exact_cpu search-gauss-k10, graph-sift-f32 on cpu. Chosen on: an unrecorded machine.
# The sizes of blocks of queries and slices of points.
CHUNK_VALUES = 1 << 21  # packed values per slice: 256 queries take 10 ms at 100 GFLOP/s [1 << 19, 1 << 21, 1 << 23]
SLICES_PER_THREAD = 2  # slices of points per thread, if packing a slice takes longer than scheduling it [1, 2, 4]
LEAST_CHUNK = 8192  # minimum number of points in a slice, even if more threads could share them [4096, 8192, 16384]
QUERY_BLOCK = 256  # queries that share a pass over the points, so that memory is not the limit [128, 256, 512]
STREAM_BLOCKS = 4  # blocks of queries per thread that share each slice packed during the search [2, 4, 8]
BLOCK_BYTES = 16 * MIB  # maximum memory for the survivors of one block of queries

# Case: exact_cpu graph-sift-f32 on cpu. Chosen on: an unrecorded machine.
# For each instruction set, the minimum number of values (n x d) and of dimensions from which a self-join computes each
# product once and uses it for both rows of the pair. Below either minimum, computing it twice is faster than keeping
# the survivors of both rows.
JOIN_FROM = {"generic": (0, 0), "avx2": (3_000_000, 32), "avx512": (9_000_000, 32), "amx": (0, 512)}
JOIN_FROM["neon"] = JOIN_FROM["avx2"]  # not measured
JOIN_BYTES = 112 * MIB  # bytes of the first survivor buffers of all active rows; more if the points are larger
JOIN_GROWTH = 1 << 21  # survivors that all active rows together may have beyond their first buffers: 32 MiB

# Case: exact_cpu search-gauss-k100 on cpu. Chosen on: an unrecorded machine.
# When thresholds are sampled, and when exact values of all candidates replace a finer screen for the last few rows.
SAMPLE_FROM_K = 64  # minimum k for a sample: for smaller k, the first k points give as good a threshold [32, 64, 128]
FEW_LEFT = 8  # maximum number of unproved rows for which exact values are faster than packing all points again

# Case: exact_cpu one-query-1m on cpu. Chosen on: an unrecorded machine.
# The sizes of native calls that compute exact values without a screen.
DIRECT_SECONDS = 5e-3  # duration of one native call if there are enough queries
DIRECT_POINTS = 8192  # minimum number of points in a slice that one native call searches [4096, 8192, 16384]
DIRECT_TIMES = 16  # minimum number of points in a slice that one native call searches, as a multiple of k

# Case: small index-1x1000x128 on cpu. Chosen on: Xeon.
PREPARED_LATER = 2e-3  # maximum seconds of a preparation that is left to the first search that needs it [5e-4, 2e-3]

# Case: exact_cpu search-gauss-k2000, search-gauss-k7500 on cpu. Chosen on: an EPYC (Zen 4), 2026-11-27.
DIRECT_QUERIES = 16  # queries of a native call, which share each read of a point; fewer if threads would be idle

# Not measured by a case. Chosen on: one core of an EPYC (Zen 4), 2026-11-27, 1 to 100 queries within a radius of 50 to
# 20,000 points of 3 to 128 dimensions by three metrics.
WITHIN_SHARE = 0.5  # time to compute exact values in a radius search, relative to a k-NN search [0.4, 0.5, 0.6]
WITHIN_PACKED = 2.5e-5  # maximum seconds of computing all exact values instead of packing points for a screen

# Case: exact_cpu graph-gist-960, search-gist-960 on cpu. Chosen on: an unrecorded machine.
# Contractions, comparisons of contracted rows before a screen (looks), and the pilot that chooses them.
CONTRACT_FROM = 4  # minimum ratio of all columns to contracted ones: contracted float32 is then no larger than int8
PILOT_FROM_SECONDS = 0.4  # minimum seconds of a search with a pilot; it takes 0.1 s, its quick test 0.01 s [0.2, 0.4]
PILOT_QUERIES = 64  # number of sampled rows that a pilot compares with all rows of its sample [32, 64, 128]
EVEN_ROWS = 512  # rows in the quick test, before the pilot, for points spread evenly in all directions
EVEN_COLUMNS = 32  # columns of the quick test: principal directions, and the length of the residual
EVEN = 0.8  # no pilot if these columns omit at least this share of the squared norms: points then spread evenly
CONTRACTED_SHARE = 0.9  # maximum time of a search with a contraction or a look, relative to one without [0.8, 0.9, 1.0]
SCATTERED = 1.8  # factor on the time of refining candidates of contracted rows: original rows are scattered in memory
MOST_LEFT = 0.02  # maximum share of the points that a look before a screen of all columns may leave [0.01, 0.02, 0.04]
EPILOGUE_COLUMNS = 32  # comparing the scores of a tile with thresholds takes as long as products of this many columns

# Case: exact_cpu search-clustered-784, one-query-clustered-784 on cpu. Chosen on: an unrecorded machine.
# If points are in the order of clusters and a comparison in few columns keeps a share s of them, it keeps about
# MARKED_COMMON x s of the pairs (query tile, point group). Up to MARKED_SINGLE is added for candidates whose own
# nearest point is not a candidate.
MARKED_COMMON = 3
MARKED_SINGLE = 0.25
MARKED_PAIRS = 384
ASKED_ONE_OF = 4  # a pilot determines the nearest other row of every ASKED_ONE_OF-th row in its sample
BALLS_SHARE = 1 / 8  # time to compare balls around groups of 4 to 16 points, relative to one to compare all points
CENTRE_ROWS = 16  # rows of the sample per cluster centre [8, 16, 32]
CENTRE_ROUNDS = 3  # rounds of Lloyd's algorithm that compute the centres [2, 3, 4]

# Not measured.
CENTRE_TASK = 4096  # rows that a thread assigns to cluster centres in one task
CENTRE_BLOCK = 256  # rows that are compared with cluster centres in one step
ACROSS_PARTS = 16  # unproved rows are retried in parts of up to 1/16 of all rows; each part packs the points again
SPARE_PARTS = 1.5  # factor on the estimated number of parts into which a block is cut whose survivors did not fit
# Results are correct with any centre and scale, because error bounds are measured. A sample is therefore enough to
# determine them.
CENTRED_ROWS = 8_192
CENTRED_VALUES = 1 << 21

# Case: exact_cpu graph-half-zeros on cpu. Chosen on: an unrecorded machine.
# The search for duplicate rows that no answer can contain.
COPIES_ROWS = 1024  # number of rows in the first sample in which duplicate rows are counted
COPIES_PAIRS = 1 << 26  # minimum number of pairs (query, point) of a search that counts duplicate rows
LEAST_COPIES = 64  # minimum number of comparisons, on average per row, that leaving out duplicate rows must save
COPIES_ROW_SECONDS = 2e-7  # seconds that one thread needs to decide whether a row is a duplicate
COPIES_TASK = 1 << 14  # rows that a thread hashes or compares in one task

# Case: exact_cpu rows-on-disk on cpu. Chosen on: an EPYC (Zen 4), 2026-11-27.
# The number of columns of codes.
CODED_ROWS = 8192  # maximum number of rows in the sample of the pilot that chooses the columns of codes
CODED_READ = 128  # rows of the sample that are copied at once: reading a row maps up to 64 KiB of the file
CODED_FROM = 4096  # minimum number of points for a pilot; codes of fewer points take little memory in all columns
CODED_STEP = 16  # step between the numbers of columns that a pilot compares
CODED_COLUMNS = 256  # maximum number of columns that a pilot compares, in addition to all columns
CODED_FAR = 8  # the pilot measures how distances grow from a row's nearest to its CODED_FAR-th nearest sample row
CODED_ROW_SECONDS = 1e-5  # seconds to read a row of a file: 1e-6 from the page cache, 1e-4 from an SSD

# Case: exact_cpu one-query-on-disk on cpu. Chosen on: Xeon (Sapphire Rapids), 2026-11-28.
# Boxes around cells of coded points, and searches that begin with them.
BOXED_CELL = 24  # number of points in a cell if the groups of the kernel allow it
BOXED_COLUMNS = 25  # columns of a box: coordinates along 24 directions, and the length of the residual
BOXED_WINDOW = 1 << 19  # maximum number of points put in order together; their sketch takes 100 bytes per point
LEAST_WINDOW = 1 << 15  # minimum number of such points; fewer only if there are fewer points
BOXED_QUERIES = 4  # maximum number of queries that are compared with boxes first
BOXED_FIRST = 64  # number of nearest boxes whose codes are read first, for a threshold
BOXED_SHARED = 1 << 18  # minimum number of points per thread that one query is compared with
BOXED_STRIDE = 16  # of more queries, one of this many groups of points is compared first, for a threshold
BOXED_ROUNDS = 2  # how often exact values of the best points of these boxes lower the threshold

# Not measured by a case, but by hand on two cores.
FARTHEST_MORE = 8  # minimum number of candidates in addition to the k farthest
FARTHEST_SCREENED = 16  # minimum n, as a multiple of the candidates, for which an inner-product search selects them
FARTHEST_BLOCK = 1 << 20  # maximum number of distances that are computed in one step
