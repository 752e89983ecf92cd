"""Tuned numbers of matches of the sky. They change no value."""

# Not measured: a bound of memory.
PAIRS = 1 << 22  # of positions that are compared at once
