"""Tuning constants of sky matching: they affect speed and memory, but no answer."""

# Not measured: a bound on memory.
PAIRS = 1 << 22  # number of pairs of positions whose separations are computed in one block
