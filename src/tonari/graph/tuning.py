"""Tuned numbers of graphs: when a merge or a change is worth it, and how much data one step processes.

Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune graph``), if there is one.
"""

# Case: nn_descent merge-100k on cpu. Chosen on: an unrecorded machine.
# It decides whether a merge runs rounds of NN-Descent or compares every point with all points of the other graph.
MERGE_SHARE = 0.5  # expected time of a merge by rounds, divided by that of a new graph of all points

# Not measured by a case, but by hand on an EPYC (Zen 4), two cores, 100,000 x 32, k = 10. Searching again for the
# neighbours of points that lost one takes 1.4 (Gaussian data) and 3 times (clusters) as long without bounds.
BOUNDING_NEIGHBOURS = 10  # number of a point's neighbours whose lists are read to bound the point's new k-th distance
CHANGED_ENTRY = 1.2e-7  # seconds per list entry to change a graph without searches; on an H100, 0.25 s for 200,000 x 10
SEARCHED_AGAIN = 1.2  # expected time to search again for one list, divided by the time per list of a new graph
CROWDED = 16  # bounds save time if a query has at most this multiple of k points within its bound

# Not measured: bounds of memory. Temporaries stay between 10 and 100 MB.
CHECKED_AT_ONCE = 1 << 20  # list entries that the constructor of a graph checks in one step
READ_AT_ONCE = 1 << 22  # list entries that a pass over a graph reads in one step
WITHIN_ENTRIES = 1 << 26  # maximum points that a block of queries finds in its bounds, before each keeps its k nearest
WITHIN_BYTES = 64  # peak memory in bytes per point found within a bound; blocks of queries are sized by it
COMPARED_AT_ONCE = 1 << 22  # pairs of entries that the overlap of two graphs compares in one step
JACCARD_AT_ONCE = 1 << 20  # neighbours that are compared in one step for Jaccard weights

# Not measured.
CHECKED_ROWS = 64  # rows whose distances are recomputed to check a graph before a merge; takes one or two ms
CHECKED_BY_SCANPY = 64  # rows whose distances in scanpy's representation are compared with the graph's
DENSE = 64  # on a map of at most this many points, all eigenvectors are computed
TAKEN_STEPS = 64  # on a map: maximum steps along neighbour lists from a sampled point to a point that it absorbs
TAIL = 0.005  # share of the values at each end that may lie outside a histogram
