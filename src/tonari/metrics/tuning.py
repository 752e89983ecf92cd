"""Judgments of metrics: sizes of the blocks of a computation. They change no value."""

# Not measured: bounds of memory; 16 lanes of REFERENCE_PAIRS float64 are 8 MB, which fit into the cache.
REFERENCE_PAIRS = 1 << 16  # computed at once by the plain reference
CHANGED_ELEMENTS = 1 << 13  # of rows for haversine, whose sines or arcsines are computed at once
MAPPED_ELEMENTS = 1 << 18  # of rows that are multiplied by a matrix at once
MAPPED_SECONDS = 2.5e-10  # of a thread, for a product of a number of a row with one of a matrix
GRADIENT_ELEMENTS = 1 << 22  # of one side, gathered in one step for gradients
