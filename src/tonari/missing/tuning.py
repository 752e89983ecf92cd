"""Tuning constants of searches among rows with missing values: they affect the speed, but no answer."""

# Case: consumers gaps on cpu. Chosen on: AMD EPYC, 2 threads.
SAMPLE = 512  # points in the sample for estimates of the distance of the k-th neighbour
SPACE = 2.0**-16  # relative increase of estimates, so that their rounding excludes no point of the sample
SPREAD = 1.5  # standard deviations that are added to the expected rank of the k-th neighbour in the sample
QUERY_BLOCK = 1 << 13  # the most queries in a block
PAIRS = 1 << 10  # pairs whose distances are computed in one step, so that their differences stay in the cache
PAIRS_HELD = 1 << 23  # candidates in memory at once; a block without an estimate may find all points for each query
GROWTH = 8  # a block may have this many times as many queries as the block before
WIDENING = 4  # factor on the rank in the sample for queries that found fewer than k points

# Not measured: seconds per pair and per value of a pair, which decide the number of threads.
PAIR_SECONDS = 2e-7
VALUE_SECONDS = 8e-9
