"""Tuning constants of searches in periodic boxes: they affect speed and memory, but no answer."""

# Not measured: bounds on memory.
PAIRS = 1 << 22  # number of pairs of a query and a point in one block
ELEMENTS = 1 << 16  # number of coordinate differences that are computed in one step

# Not measured: the largest number of periodic dimensions for which images of queries are searched, up to
# 2 ** dimensions for each query; with more, each query is compared with all points.
MOST_PERIODIC = 6
