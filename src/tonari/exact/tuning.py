"""Tuned numbers of exact search on the CPU: they affect its speed, but no answer."""

from tonari.core.units import MIB

# Case: exact_cpu search-gauss-k10, graph-sift-f32 on cpu. Chosen on: not recorded.
CHUNK_VALUES = 1 << 21  # packed values per kernel call: 10 ms of 256 queries at 100 GFLOP/s [1 << 19, 1 << 21, 1 << 23]
SLICES_PER_THREAD = 2  # that a thread packs, if these take longer than handing them out [1, 2, 4]
LEAST_CHUNK = 8192  # points of one [4096, 8192, 16384]
QUERY_BLOCK = 256  # queries that share one pass: bound by arithmetic, not by memory [128, 256, 512]
STREAM_BLOCKS = 4  # blocks of queries per thread that share a slice of points packed for them alone [2, 4, 8]
BLOCK_BYTES = 16 * MIB  # most memory for the survivors of one block of queries

# Case: exact_cpu graph-sift-f32 on cpu. Chosen on: not recorded.
# Values of all points, and dimensions, from which on a self-join is faster: below, multiplying again takes less time
# than keeping survivors for both sides.
JOIN_FROM = {"generic": (0, 0), "avx2": (3_000_000, 32), "avx512": (9_000_000, 32), "amx": (0, 512)}
JOIN_FROM["neon"] = JOIN_FROM["avx2"]  # not measured
JOIN_BYTES = 112 * MIB  # first buffers for the survivors of all active rows; more if the points themselves take more
JOIN_GROWTH = 1 << 21  # survivors that all active rows together may hold beyond their first buffers: 32 MiB

# Case: exact_cpu search-gauss-k100 on cpu. Chosen on: not recorded.
SAMPLE_FROM_K = 64  # for smaller k, the first k points give as good a threshold as a sample [32, 64, 128]
FEW_LEFT = 8  # so few rows are resolved by exact values faster than all points are packed again

# Case: exact_cpu one-query-1m on cpu. Chosen on: not recorded.
DIRECT_SECONDS = 5e-3  # of one native call
DIRECT_POINTS = 8192  # of a slice, which computes exact values for k neighbours of its own [4096, 8192, 16384]
DIRECT_TIMES = 16  # as many as that for each neighbour

# Not measured by a case. Chosen on: one core of an EPYC (Zen 4), 2026-11-27, 1 to 100 queries within a radius of 50 to
# 20,000 points of 3 to 128 dimensions by three metrics.
WITHIN_SHARE = 0.5  # of the seconds of a search by exact values, for comparing them with a radius [0.4, 0.5, 0.6]
WITHIN_PACKED = 2.5e-5  # seconds of a screen of packed points that exact values may take instead

# Case: exact_cpu graph-gist-960, search-gist-960 on cpu. Chosen on: not recorded.
CONTRACT_FROM = 4  # times as many columns: then float32 in so few takes no more memory than int8 in all
PILOT_FROM_SECONDS = 0.8  # of one thread: a pilot takes 0.1 to 0.2 seconds, and 0.01 where rows spread evenly
PILOT_QUERIES = 64  # [32, 64, 128]
EVEN_ROWS = 512  # to find out quickly that rows spread evenly,
EVEN_COLUMNS = 32  # by so few columns:
EVEN = 0.8  # share of the squared norm outside of them from which on it is not worth to look closer
CONTRACTED_SHARE = 0.9  # of the time with all columns that a contraction may take at most [0.8, 0.9, 1.0]
SCATTERED = 1.8  # times as long as usual for a candidate: long rows far apart in memory
MOST_LEFT = 0.02  # share of the points that a look's contracted rows may leave over [0.01, 0.02, 0.04]
EPILOGUE_COLUMNS = 32  # that take as long as judging a tile's scores

# Case: exact_cpu search-clustered-784, one-query-clustered-784 on cpu. Chosen on: not recorded.
# Where points are in order, a look that leaves a share s of the points marks about 3 s of the tiles and groups for what
# they have in common, and up to a quarter for what they have not: candidates whose nearest point is none.
MARKED_COMMON = 3
MARKED_SINGLE = 0.25
MARKED_PAIRS = 384
ASKED_ONE_OF = 4  # one of so many rows of the sample is asked for its nearest
BALLS_SHARE = 1 / 8  # of a look at all points, for comparing the balls around their groups, of 4 to 16 points
CENTRE_ROWS = 16  # of the sample for each centre [8, 16, 32]
CENTRE_ROUNDS = 3  # [2, 3, 4]

# Not measured.
CENTRE_TASK = 4096  # rows of a thread's task
CENTRE_BLOCK = 256  # rows that meet the centres together
ACROSS_PARTS = 16  # of all rows; the points are packed again for each
SPARE_PARTS = 1.5  # a block that was too full is cut into this many times the parts that its first points call for
# Results are correct with any centre and scale (the bounds measure their effect); those of a sample are good enough.
CENTRED_ROWS = 8_192
CENTRED_VALUES = 1 << 21

# Case: exact_cpu graph-half-zeros on cpu. Chosen on: not recorded.
COPIES_ROWS = 1024  # among which copies are looked for first
COPIES_PAIRS = 1 << 26  # of a search that takes long enough to look for them
LEAST_COPIES = 64  # left out, on average over all rows: about what reaching one point less in a screen saves
COPIES_ROW_SECONDS = 2e-7  # of one thread for finding out about a row
COPIES_TASK = 1 << 14  # rows of a thread's task
