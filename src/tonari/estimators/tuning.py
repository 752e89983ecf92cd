"""Tuned numbers of scikit-learn's classes: how labels are counted; they change no prediction."""

# Not measured: a bound of memory.
ENTRIES = 1 << 18  # the largest number of labels, sums of classes or values in memory at once

# Not measured.
FEW_CLASSES = 8  # up to this many classes per neighbour, summing all of them is faster than sorting the labels
