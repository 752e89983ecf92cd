"""Tuning constants of the command line."""

# Not measured: a bound on memory.
NAMED_AT_ONCE = 1 << 20  # number of pairs whose row numbers are replaced by names in one step
