"""Tuned numbers of exact search on the CPU: they affect its speed, but no answer."""

from tonari.core.units import MIB

# Case: exact_cpu search-gauss-k10, graph-sift-f32 on cpu. Chosen on: not recorded.
CHUNK_VALUES = 1 << 21  # packed values per kernel call: 10 ms of 256 queries at 100 GFLOP/s [1 << 19, 1 << 21, 1 << 23]
SLICES_PER_THREAD = 2  # slices per thread, if packing one takes longer than scheduling it [1, 2, 4]
LEAST_CHUNK = 8192  # least points of a slice [4096, 8192, 16384]
QUERY_BLOCK = 256  # queries that share one pass: bound by arithmetic, not by memory [128, 256, 512]
STREAM_BLOCKS = 4  # blocks of queries per thread that share a slice of points packed for them alone [2, 4, 8]
BLOCK_BYTES = 16 * MIB  # most memory for the survivors of one block of queries

# Case: exact_cpu graph-sift-f32 on cpu. Chosen on: not recorded.
# The least numbers of values (of all points) and of dimensions for which a self-join is faster. Below them, computing
# each product twice takes less time than keeping the survivors of both rows.
JOIN_FROM = {"generic": (0, 0), "avx2": (3_000_000, 32), "avx512": (9_000_000, 32), "amx": (0, 512)}
JOIN_FROM["neon"] = JOIN_FROM["avx2"]  # not measured
JOIN_BYTES = 112 * MIB  # first buffers for the survivors of all active rows; more if the points themselves take more
JOIN_GROWTH = 1 << 21  # survivors that all active rows together may hold beyond their first buffers: 32 MiB

# Case: exact_cpu search-gauss-k100 on cpu. Chosen on: not recorded.
SAMPLE_FROM_K = 64  # for smaller k, the first k points give as good a threshold as a sample [32, 64, 128]
FEW_LEFT = 8  # up to this many rows, exact values take less time than packing all points again

# Case: exact_cpu one-query-1m on cpu. Chosen on: not recorded.
DIRECT_SECONDS = 5e-3  # duration of one native call, if it has enough queries
DIRECT_POINTS = 8192  # least points of a slice, which computes exact values for its own k nearest [4096, 8192, 16384]
DIRECT_TIMES = 16  # least points of a slice, as a multiple of k

# Case: small index-1x1000x128 on cpu. Chosen on: Xeon.
PREPARED_LATER = 2e-3  # seconds of a preparation that is left to the first search that needs it [5e-4, 2e-3]

# Case: exact_cpu search-gauss-k2000, search-gauss-k7500 on cpu. Chosen on: an EPYC (Zen 4), 2026-11-27.
DIRECT_QUERIES = 16  # queries of one native call, if each thread has as many: they share the reads of the points

# Not measured by a case. Chosen on: one core of an EPYC (Zen 4), 2026-11-27, 1 to 100 queries within a radius of 50 to
# 20,000 points of 3 to 128 dimensions by three metrics.
WITHIN_SHARE = 0.5  # time of a radius search by exact values, relative to a search for the nearest [0.4, 0.5, 0.6]
WITHIN_PACKED = 2.5e-5  # exact values replace a screen of packed points if they take fewer seconds than this

# Case: exact_cpu graph-gist-960, search-gist-960 on cpu. Chosen on: not recorded.
CONTRACT_FROM = 4  # least ratio of all columns to contracted ones; float32 then takes no more memory than int8 in all
PILOT_FROM_SECONDS = 0.4  # of one thread, for a search with a pilot: 0.1 s, or 0.01 s if rows spread evenly [0.2, 0.4]
PILOT_QUERIES = 64  # [32, 64, 128]
EVEN_ROWS = 512  # rows of a quick test whether the points spread evenly in all directions
EVEN_COLUMNS = 32  # columns of that test: principal directions, and the residual
EVEN = 0.8  # from this share of the squared norm in the residual on, rows are taken as evenly spread, without a pilot
CONTRACTED_SHARE = 0.9  # largest time of a search with a contraction, relative to all columns [0.8, 0.9, 1.0]
SCATTERED = 1.8  # time of a candidate relative to the usual one, because long rows are far apart in memory
MOST_LEFT = 0.02  # largest share of the points that a look may leave [0.01, 0.02, 0.04]
EPILOGUE_COLUMNS = 32  # columns whose products take as long as comparing a tile's scores with thresholds

# Case: exact_cpu search-clustered-784, one-query-clustered-784 on cpu. Chosen on: not recorded.
# If points are in the order of clusters, a look that leaves a share s of the points marks about 3 s of all pairs of a
# tile and a group, plus up to a quarter of them for candidates whose nearest point is not a candidate.
MARKED_COMMON = 3
MARKED_SINGLE = 0.25
MARKED_PAIRS = 384
ASKED_ONE_OF = 4  # the nearest row is computed for one of this many rows of the sample
BALLS_SHARE = 1 / 8  # time of comparing the balls around groups of 4 to 16 points, relative to a look at all points
CENTRE_ROWS = 16  # rows of the sample per centre [8, 16, 32]
CENTRE_ROUNDS = 3  # [2, 3, 4]

# Not measured.
CENTRE_TASK = 4096  # rows of a thread's task
CENTRE_BLOCK = 256  # rows that are compared with the centres at once
ACROSS_PARTS = 16  # parts into which all rows are divided; the points are packed again for each part
SPARE_PARTS = 1.5  # factor on the number of parts into which a block with too many survivors is cut
# Results are correct with any centre and scale (the bounds measure their effect); those of a sample are good enough.
CENTRED_ROWS = 8_192
CENTRED_VALUES = 1 << 21

# Case: exact_cpu graph-half-zeros on cpu. Chosen on: not recorded.
COPIES_ROWS = 1024  # rows of the sample in which copies are counted first
COPIES_PAIRS = 1 << 26  # least pairs of a search that is long enough to justify the count
LEAST_COPIES = 64  # least copies that must be left out per row, on average
COPIES_ROW_SECONDS = 2e-7  # seconds of one thread to decide whether a row is a copy
COPIES_TASK = 1 << 14  # rows of a thread's task

# Case: exact_cpu rows-on-disk on cpu. Chosen on: an EPYC (Zen 4), 2026-11-27.
CODED_ROWS = 8192  # largest sample of the pilot that chooses the columns of codes
CODED_READ = 128  # rows of the sample that are read at once: each maps up to 64 KiB of the file
CODED_FROM = 4096  # least number of points for a pilot; codes of fewer points take little memory in all columns
CODED_STEP = 16  # step between the compared numbers of columns
CODED_COLUMNS = 256  # the largest of them below all columns
CODED_FAR = 8  # rank of the neighbour in the sample that shows how distances grow with the number of points
CODED_ROW_SECONDS = 1e-5  # to read a row of a file: a tenth of it from the page cache, ten times as long from an SSD

# Not measured by a case, but by hand on two cores.
FARTHEST_MORE = 8  # least number of candidates in addition to the k farthest
FARTHEST_SCREENED = 16  # an inner product selects candidates if there are this many points per candidate
FARTHEST_BLOCK = 1 << 20  # distances that are computed in one step
