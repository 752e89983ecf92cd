"""Tuned numbers of metrics: sizes of the blocks of a computation. They change no value."""

# Not measured: bounds of memory; 16 lanes of REFERENCE_PAIRS float64 are 8 MB, which fit into the cache.
REFERENCE_PAIRS = 1 << 16  # pairs that the plain reference computes at once
CHANGED_ELEMENTS = 1 << 13  # elements whose sines or arcsines are computed at once, for haversine
MAPPED_ELEMENTS = 1 << 18  # elements of rows that are multiplied by a matrix at once
MAPPED_SECONDS = 2.5e-10  # expected time of a multiplication and an addition of this product, on one thread
GRADIENT_ELEMENTS = 1 << 22  # elements of one side that are gathered at once for gradients
