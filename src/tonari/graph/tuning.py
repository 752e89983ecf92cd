"""Tuned numbers of graphs: the amounts of data that are checked, kept in memory and compared."""

# Case: nn_descent merge-100k on cpu. Chosen on: not recorded.
MERGE_SHARE = 0.5  # expected time of a merge by rounds, as a share of that of building the joined graph from scratch

# Not measured by a case, but by hand on an EPYC (Zen 4), two cores, 100,000 x 32, k = 10: without a bound, lists that
# lost a point take 1.4 (Gaussian) and 3 times (clusters) as long to search again.
BOUNDING_NEIGHBOURS = 10  # neighbours of a point whose lists bound the distance of its k-th nearest
CHANGED_ENTRY = 1.2e-7  # seconds per entry of the lists of a changed graph; on an H100, 0.25 s for 200,000 x 10
SEARCHED_AGAIN = 1.2  # time of a list that is searched again, as a multiple of that of a list of a new graph
CROWDED = 16  # bounds are worth it for at most this many points within them per wanted neighbour

# Not measured: bounds of memory. Temporaries stay between 10 and 100 MB.
CHECKED_AT_ONCE = 1 << 20  # entries that are checked in one step
READ_AT_ONCE = 1 << 22  # entries that are read in one step
WITHIN_ENTRIES = 1 << 26  # neighbours within a radius that one block of queries may find, before they are cut to k
WITHIN_BYTES = 64  # bytes of a neighbour within a radius until it is cut; one block takes no more than the memory
COMPARED_AT_ONCE = 1 << 22  # pairs of entries that a comparison of two graphs processes in one step
JACCARD_AT_ONCE = 1 << 20  # neighbours that are compared in one step for Jaccard weights

# Not measured.
CHECKED_ROWS = 64  # checked rows per graph to be merged: recomputing their distances takes a millisecond or two
CHECKED_BY_SCANPY = 64  # rows of a representation whose distances are compared with the graph
DENSE = 64  # for up to this many points, all eigenvectors are computed
TAKEN_STEPS = 64  # largest number of steps from a sampled point to the points that it absorbs
TAIL = 0.005  # share of the values at each end that may lie outside a histogram
