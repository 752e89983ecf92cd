"""Tuned numbers of the public functions: for the segments of an Index, and sizes of blocks. They change no answer."""

# Not measured by a case, but by hand on a core of a Xeon: see api/index/segments/balancing.py.
AROUND = 64  # most removed points that stay in a segment; each search finds and drops them
SMALL = 1024  # shorter segments are merged: packing this many rows takes as long as a few searches

# Case: spanning blobs, cube on cpu. Chosen on: an unrecorded machine.
LISTED_MORE = 6  # neighbours listed beyond the min_samples-th, for the first rounds of merging components [3, 6, 12]
WALKED_VALUES = 1 << 17  # for points of up to this many values, a k-d tree finds the spanning tree [1 << 14, 1 << 17]
MANY = 0.05  # searches for more than this share of the points choose their own method [0.02, 0.05, 0.1]

# Not measured: bounds on memory.
KTH_HELD = 1 << 24  # neighbours in memory at once for the k-th distances
PAIRS_FIRST_ROWS = 8_192  # rows of the first block in a search for pairs
PAIRS_LEAST_ROWS = 256  # fewest rows of a block in a search for pairs
PAIRS_HELD = 1 << 23  # target number of pairs that a block of rows finds
COUNTS_CHECKED = 1 << 20  # target number of distances in a block that is checked for overflow
PAIRS_GROWTH = 8  # largest ratio of the numbers of rows in two successive blocks of a search for pairs

# Not measured.
CHECKED_SLICES = 4  # slices of rows on disk to compare with checksums if the file has its old size and time
CODED_QUERIES = 64  # expected number of queries of a search by codes, for which their memory leaves room
