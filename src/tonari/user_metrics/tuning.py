"""Tuning constants of searches by the caller's own distances: sizes of blocks. They change no answer."""

# Not measured: bounds on memory, which keep a block and its selection in the cache.
BLOCK_VALUES = 1 << 21  # maximum number of distances in a block
BLOCK_ROWS = 256  # maximum queries in a block; if distances are symmetric, only those within a block are computed twice
FUNCTION_NUMBERS = 1 << 20  # maximum number of values in a block of points that is passed to a function
