"""Tuning constants of searches among rows with missing values: they affect the speed, but no answer."""

# Case: consumers gaps on cpu. Chosen on: Intel Xeon with AVX-512, 2 threads.
QUERY_BLOCK = 256  # maximum number of queries per task: they stay in the second-level cache with a group of points
SCANNED = 1 << 26  # pairs times columns that are compared between two tests for Ctrl-C: some milliseconds
COLUMN_SECONDS = 6e-11  # seconds for each column of a pair
PACKED_SECONDS = 4e-9  # seconds to pack a number of a point

# Not measured: these seconds decide the number of threads.
PAIRS = 1 << 14  # pairs whose exact distances are computed between two tests for Ctrl-C
PAIR_SECONDS = 5e-8  # seconds for the exact distance of a pair, whatever the number of columns
VALUE_SECONDS = 5e-10  # additional seconds for each column of the pair

# Not measured: for lists of points, one for each query.
PAIRS_HELD = 1 << 23  # target number of listed pairs in memory
