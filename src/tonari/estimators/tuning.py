"""Tuning constants of the estimators, which affect speed and memory but no prediction."""

# Not measured: a bound on memory.
ENTRIES = 1 << 18  # the largest number of labels, sums or values in one block of rows

# Case: consumers dbscan, dbscan-32d on cpu. Chosen on: AMD EPYC (family 25 model 17), 2 threads.
RADIUS_ENTRIES = 1 << 19  # the most neighbours of a block of queries if `memory` is None [1 << 17, 1 << 19, 1 << 21]

# Not measured.
FEW_CLASSES = 8  # with at most this many classes per neighbour, votes are summed for all classes instead of sorted
UNCOUNTED_ROWS = 1024  # a radius search does not count points first if lists of all points fit for this many rows
IMPUTED_SPARE = 1.5  # factor on the number of neighbours to search, as some may lack a number in the column
