"""Tuning constants of searches by the caller's own distances: sizes of blocks. They change no answer."""

# Not measured: bounds on memory, which keep a block and its selection in the cache.
BLOCK_VALUES = 1 << 21  # the most distances in a block
BLOCK_ROWS = 256  # the most queries in a block; in a symmetric graph, distances within a block are computed twice
FUNCTION_NUMBERS = 1 << 20  # the most numbers in a block of points that is passed to a function
