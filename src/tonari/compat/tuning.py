"""Tuning constants of the lookalike functions: they affect the speed, but no answer."""

# Not measured: a bound of memory.
NORMALIZED = 1 << 20  # elements that faiss.normalize_L2 converts at once
