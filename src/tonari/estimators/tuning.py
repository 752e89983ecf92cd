"""Tuned numbers of scikit-learn's classes: how labels are counted, and sizes of blocks; they change no prediction."""

# Not measured: a bound of memory.
ENTRIES = 1 << 18  # the largest number of labels, sums of classes or values in memory at once

# Case: consumers dbscan, dbscan-32d on cpu. Chosen on: AMD EPYC (family 25 model 17), 2 threads.
RADIUS_ENTRIES = 1 << 19  # of lists within a radius in memory at once, without `memory` [1 << 17, 1 << 19, 1 << 21]

# Not measured.
FEW_CLASSES = 8  # up to this many classes per neighbour, summing all of them is faster than sorting the labels
UNCOUNTED_ROWS = 1024  # if lists of all points fit for this many rows, points are not counted before they are listed
IMPUTED_SPARE = 1.5  # factor on the number of listed neighbours, in case near rows have no number in the column
