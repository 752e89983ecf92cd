"""Tuned numbers of the checks of arguments."""

# Case: small search-1x1000000x8 on cpu. Chosen on: not recorded.
CHECKED_VALUES = 1 << 24  # values that are checked in one step
CHECKED_BYTES = 1 << 25  # checked by a thread in one step, between Ctrl-C checks [1 << 23, 1 << 25, 1 << 27]
BYTE_SECONDS = 1e-10  # seconds of checking a byte [5e-11, 1e-10, 2e-10]

# Case: small index-1x1000x3 on cpu. Chosen on: not recorded.
LEAST_COMPARED = 3  # smallest number of rows that are compared with their copies: 0.2 µs
MOST_COMPARED = 32  # largest number of rows that are compared with their copies [8, 32, 128]
COMPARED_ONE_OF = 64  # at most one row in this many is compared: searches of more rows take longer
FEW_VALUES = 1024  # a search of queries with fewer values than this may take only a few microseconds
