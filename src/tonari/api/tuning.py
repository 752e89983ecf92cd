"""Tuned numbers of the public functions: for the segments of an Index, and sizes of blocks. They change no answer."""

# Not measured by a case, but by hand on a core of a Xeon: see api/index/segments/balancing.py.
AROUND = 64  # maximum number of removed points that stay in a segment; each search finds and drops them
SMALL = 1024  # segments of fewer rows are merged: packing this many rows takes as long as a few searches

# Case: spanning blobs, cube on cpu. Chosen on: an unrecorded machine.
LISTED_MORE = 6  # listed neighbours beyond the min_samples-th, for the first rounds that merge components [3, 6, 12]
WALKED_VALUES = 1 << 17  # a k-d tree finds the spanning tree of at most this many values (n x d) [1 << 14, 1 << 17]
MANY = 0.05  # if k exceeds this share of the points, the search chooses its method again [0.02, 0.05, 0.1]

# Not measured: bounds on memory.
KTH_HELD = 1 << 24  # number of neighbours in memory at once, for the k-th distances
PAIRS_FIRST_ROWS = 8_192  # number of rows in the first block of a search for pairs
PAIRS_LEAST_ROWS = 256  # minimum number of rows in a block of a search for pairs
PAIRS_HELD = 1 << 23  # number of pairs that a block of rows is expected to find
COUNTS_CHECKED = 1 << 20  # number of distances in a block that is checked for overflow
PAIRS_GROWTH = 8  # maximum ratio of the numbers of rows in two successive blocks of a search for pairs

# Not measured.
CHECKED_SLICES = 4  # slices of rows on disk to compare with checksums if the file has its old size and time
CODED_QUERIES = 64  # expected number of queries of a search by codes, for which their memory leaves room
