"""Tuned numbers of spanning trees: the points and entries of one search."""

# Case: spanning blobs, cube on cpu. Chosen on: not recorded.
ENTRIES = 1 << 22  # of lists that are asked for at a time [1 << 20, 1 << 22]
FIRST_ASKED = 64  # points of a component that ask first [16, 64, 256]
GROWTH = 16  # times as many ask next [4, 16]
LARGE_COMPONENT = 2048  # points of a component whose bounds take less time than their searches [1024, 2048, 4096]

# Not measured: a bound of memory.
VALUES = 1 << 22  # float64 numbers that are held at a time, at most
