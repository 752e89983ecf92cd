"""Tuned sizes of the caches between calls."""

# Not measured: some hundred kinds of small calls at a time; when there are more, all are forgotten.
KEPT_CALLS = 64  # by arguments
KEPT_DECISIONS = 256  # by sizes
KEPT_SEARCHES = 256  # by arguments and sizes
