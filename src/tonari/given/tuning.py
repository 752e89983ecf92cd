"""Tuned numbers of searches by the caller's distances: sizes of blocks. They change no answer."""

# Not measured: bounds of memory, which keep a block and its selection in the cache.
BLOCK_VALUES = 1 << 21  # distances that are held at once
BLOCK_ROWS = 256  # queries at most; in a symmetric graph, half of this many distances of each row are computed twice
FUNCTION_NUMBERS = 1 << 20  # numbers of the points that a function gets at once
