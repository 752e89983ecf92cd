"""Tuning constants of searches among rows with missing values: they affect the speed, but no answer."""

# Case: consumers gaps on cpu. Chosen on: AMD EPYC, 2 threads.
SAMPLE = 512  # points in the sample for estimates of the distance of the k-th neighbour
SPACE = 2.0**-16  # relative increase of estimates, so that their rounding excludes no point of the sample
SPREAD = 1.5  # standard deviations by which the expected rank of the k-th neighbour in the sample is raised
QUERY_BLOCK = 1 << 13  # maximum number of queries in a block
PAIRS = 1 << 10  # pairs whose distances are computed in one step, so that their differences stay in the cache
PAIRS_HELD = 1 << 23  # target number of candidate pairs in memory, which bounds the number of queries in a block
GROWTH = 8  # maximum ratio of the numbers of queries in two successive blocks
WIDENING = 4  # factor on the rank in the sample from which a query's limit is taken, for each further search

# Not measured: a bound on memory.
MOVED_ELEMENTS = 1 << 16  # numbers in a block of points that is centred and scaled

# Not measured: these seconds decide the number of threads.
PAIR_SECONDS = 2e-7  # seconds for the exact distance of a pair, whatever the number of columns
VALUE_SECONDS = 8e-9  # additional seconds for each column of the pair
