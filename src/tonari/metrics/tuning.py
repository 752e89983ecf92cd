"""Tuning constants of metrics: sizes of the blocks of a computation. They change no value."""

# Not measured: bounds on memory. 16 lanes of REFERENCE_PAIRS float64 numbers take 8 MB, which fit into the cache.
REFERENCE_PAIRS = 1 << 16  # pairs in a block of the reference implementation
CHANGED_ELEMENTS = 1 << 13  # elements in a block whose sines or arcsines are computed, for haversine
WIDENED_ELEMENTS = 1 << 16  # elements in a block of rows that are converted to float64
MAPPED_ELEMENTS = 1 << 16  # elements in a block of rows that are multiplied by a matrix
MAPPED_SECONDS = 2.5e-10  # seconds per multiplication and addition of rows times a matrix, on one thread
GRADIENT_ELEMENTS = 1 << 22  # elements of queries (and of points) that are copied for one block of pairs
