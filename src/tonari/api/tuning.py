"""Judgments of the verbs: the segments of an Index, and sizes of blocks. They change no answer."""

# Not measured by a case, but by hand on a core of a Xeon: see api/index/balancing.py.
AROUND = 64  # removed points that a search of a segment finds in vain
SMALL = 1024  # rows that are packed faster than a search visits one more segment

# Case: spanning blobs, cube on cpu. Chosen on: not recorded.
LISTED_MORE = 6  # neighbours listed in addition to the core distance's, for the first rounds [3, 6, 12]
MANY = 0.05  # share of the points: if more ask at once, all points are searched [0.02, 0.05, 0.1]

# Not measured: bounds of memory.
KTH_HELD = 1 << 24  # neighbours in memory at once for the k-th distances
PAIRS_FIRST_ROWS = 8_192  # rows of the points whose pairs are in memory at once on their way to a file, at first,
PAIRS_LEAST_ROWS = 256  # at least,
PAIRS_HELD = 1 << 23  # and for as many pairs as this
PAIRS_GROWTH = 8  # of these rows over the last ones
