"""Tuning constants of metrics: sizes of the blocks of a computation. They change no value."""

# Not measured: bounds on memory. 16 lanes of REFERENCE_PAIRS float64 numbers take 8 MB, which fit into the cache.
REFERENCE_PAIRS = 1 << 16  # number of pairs in a block of the reference implementation
CHANGED_ELEMENTS = 1 << 13  # number of elements in a block whose sines or arcsines are computed, for haversine
MAPPED_ELEMENTS = 1 << 18  # number of elements in a block of rows that is multiplied by a matrix
MAPPED_SECONDS = 2.5e-10  # seconds per multiply-add of one thread, when rows are multiplied by a matrix
GRADIENT_ELEMENTS = 1 << 22  # number of elements of queries, and of points, that are copied for one block of pairs
