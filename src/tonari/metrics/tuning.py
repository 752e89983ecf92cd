"""Judgments of metrics: what is computed at a time; they change no value."""

# Not measured: bounds of memory; 16 lanes of REFERENCE_PAIRS float64 are 8 MB, which fit into the cache.
REFERENCE_PAIRS = 1 << 16  # computed at once by the plain reference
CHANGED_ELEMENTS = 1 << 13  # of rows for haversine, whose sines or arcsines are computed at once
GRADIENT_ELEMENTS = 1 << 22  # of one side that are gathered at a time for gradients
