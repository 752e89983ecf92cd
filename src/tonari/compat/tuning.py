"""Tuned numbers of lookalikes. They change no value."""

# Not measured: a bound of memory.
NORMALIZED = 1 << 20  # elements that faiss.normalize_L2 converts at once
