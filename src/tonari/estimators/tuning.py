"""Judgments of scikit-learn's classes: how labels are counted; they change no prediction."""

# Not measured: a bound of memory.
ENTRIES = 1 << 18  # labels, sums of classes or values that are held at a time, at most

# Not measured.
FEW_CLASSES = 8  # per neighbour: the sums of all of them take less time than sorting the labels
