"""Tuning constants of searches among rows with missing values: they affect the speed, but no answer."""

# Case: consumers gaps on cpu. Chosen on: AMD EPYC, 2 threads.
SAMPLE = 512  # points for the estimate of the distance of the k-th neighbour
SPACE = 2.0**-16  # added to estimates, relatively, so that their rounding excludes no point of the sample
SPREAD = 1.5  # standard deviations that are added to the expected rank in the sample
QUERY_BLOCK = 1 << 13  # queries at once
PAIRS = 1 << 10  # pairs whose values are computed at once: their differences stay in the cache
PAIRS_HELD = 1 << 23  # candidates at once; the first queries, and those without an estimate, may find all points
GROWTH = 8  # of the number of queries at once, if they find few points
WIDENING = 4  # factor on the rank in the sample for queries that found fewer than k points

# Not measured: seconds per pair and per value; they decide the number of threads.
PAIR_SECONDS = 2e-7
VALUE_SECONDS = 8e-9
