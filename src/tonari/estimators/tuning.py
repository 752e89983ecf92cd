"""Judgments of scikit-learn's classes: how labels are counted, and sizes of blocks; they change no prediction."""

# Not measured: a bound of memory.
ENTRIES = 1 << 18  # the largest number of labels, sums of classes or values in memory at once
RADIUS_ENTRIES = 1 << 21  # the largest number of entries of lists within a radius in memory at once, without `memory`

# Not measured.
FEW_CLASSES = 8  # up to this many classes per neighbour, summing all of them is faster than sorting the labels
UNCOUNTED_ROWS = 1024  # if lists of all points fit for this many rows, points are not counted before they are listed
