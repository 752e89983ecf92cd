"""Tuned numbers of periodic boxes. They change no value."""

# Not measured: bounds of memory.
PAIRS = 1 << 22  # of rows and points that are compared at once
ELEMENTS = 1 << 16  # of differences that are computed at once

# Not measured: with more periodic dimensions, all pairs are compared instead of 2 ** dimensions images of each query.
MOST_PERIODIC = 6
