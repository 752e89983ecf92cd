"""Tuned numbers of graphs: the amounts of data that are checked, kept in memory and compared."""

# Case: nn_descent merge-100k on cpu. Chosen on: not recorded.
MERGE_SHARE = 0.5  # expected time of a merge by rounds, as a share of that of building the joined graph from scratch

# Not measured: bounds of memory. Temporaries stay between 10 and 100 MB.
CHECKED_AT_ONCE = 1 << 20  # entries
READ_AT_ONCE = 1 << 22  # entries
COMPARED_AT_ONCE = 1 << 22  # pairs of entries, where two graphs are compared
JACCARD_AT_ONCE = 1 << 20  # neighbours

# Not measured.
CHECKED_ROWS = 64  # per graph to be merged: recomputing their distances takes a millisecond or two
CHECKED_BY_SCANPY = 64  # rows of a representation that a graph is compared with
DENSE = 64  # points up to which all eigenvectors are computed
TAKEN_STEPS = 64  # from a drawn point to those that it takes in
TAIL = 0.005  # share of the values at each end that may lie outside a histogram
