"""Tuning constants of the checks of arguments. Each group names the benchmark case that measures it."""

# Case: small search-1x1000000x8 on cpu. Chosen on: an unrecorded machine.
CHECKED_VALUES = 1 << 20  # maximum number of values checked in one step; their float64 copies take 8 MB
CHECKED_BYTES = 1 << 25  # bytes that a thread checks between two tests for Ctrl-C [1 << 23, 1 << 25, 1 << 27]
BYTE_SECONDS = 1e-10  # seconds to check a byte on one thread; decides the number of threads [5e-11, 1e-10, 2e-10]

# Case: small index-1x1000x3 on cpu. Chosen on: an unrecorded machine.
LEAST_COMPARED = 3  # minimum number of rows that are compared with their copies; comparing them takes 0.2 µs
MOST_COMPARED = 32  # maximum number of rows that are compared with their copies [8, 32, 128]
COMPARED_ONE_OF = 64  # one row in this many is compared with its copy, from LEAST_COMPARED to MOST_COMPARED rows
FEW_VALUES = 1024  # if the queries have fewer values than this, only LEAST_COMPARED rows are compared
