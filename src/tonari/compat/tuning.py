"""Tuning constants of the drop-in functions: they affect speed and memory, but no answer."""

# Not measured: a bound on memory.
NORMALIZED = 1 << 20  # number of elements that faiss.normalize_L2 converts in one step
