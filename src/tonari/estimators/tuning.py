"""Tuning constants of the estimators, which affect speed and memory but no prediction."""

# Not measured: a bound on memory.
ENTRIES = 1 << 18  # maximum number of labels, sums or values in one block of rows

# Case: consumers dbscan, dbscan-32d on cpu. Chosen on: AMD EPYC (family 25 model 17), 2 threads.
RADIUS_ENTRIES = 1 << 19  # maximum neighbours of a block of queries if `memory` is None [1 << 17, 1 << 19, 1 << 21]

# Not measured.
FEW_CLASSES = 8  # up to this ratio of classes to k, votes are summed for each class; above it, labels are sorted
UNCOUNTED_ROWS = 1024  # no count precedes a radius search if memory has room for this many lists of all points
IMPUTED_SPARE = 1.5  # ratio of searched to needed neighbours, as some have no value in the column to fill
