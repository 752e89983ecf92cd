"""Tuned numbers of the checks of arguments."""

# Case: small search-1x1000000x8 on cpu. Chosen on: not recorded.
CHECKED_VALUES = 1 << 24  # at once
CHECKED_BYTES = 1 << 25  # that a thread checks at once: between them Ctrl-C takes effect [1 << 23, 1 << 25, 1 << 27]
BYTE_SECONDS = 1e-10  # for a byte [5e-11, 1e-10, 2e-10]

# Case: small index-1x1000x3 on cpu. Chosen on: not recorded.
LEAST_COMPARED = 3  # rows of which it is asked whether they changed: 0.2 µs
MOST_COMPARED = 32  # [8, 32, 128]
COMPARED_ONE_OF = 64  # rows is compared, at most: the more there are, the longer a search takes
FEW_VALUES = 1024  # of the queries: a search of fewer may take a few microseconds
