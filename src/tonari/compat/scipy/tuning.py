"""Tuning constants of searches in periodic boxes: they affect speed and memory, but no answer."""

# Not measured: bounds on memory.
PAIRS = 1 << 22  # pairs of a query and a point in one block
ELEMENTS = 1 << 16  # differences of coordinates that are computed at once

# Not measured: with more periodic dimensions than this, each query is compared with all points, because it would have
# 2 ** dimensions images.
MOST_PERIODIC = 6
