"""Tuned numbers of spanning trees: the points and entries of one search."""

# Case: spanning blobs, cube on cpu. Chosen on: not recorded.
ENTRIES = 1 << 22  # entries of the lists that one search returns [1 << 20, 1 << 22]
FIRST_ASKED = 64  # points of a component that search first [16, 64, 256]
GROWTH = 16  # ratio of the number of points that search next [4, 16]
LARGE_COMPONENT = 2048  # points; in larger components, bounds take less time than searches [1024, 2048, 4096]

# Not measured: a bound of memory.
VALUES = 1 << 22  # largest number of float64 values in memory at once

# Case: spanning blobs, cube on cpu. Chosen on: EPYC Zen 4.
TASKS_PER_THREAD = 8  # tasks of a round per thread: walks of some leaves take much longer than others [4, 8, 32]

# Not measured.
SLICE_VALUES = 1 << 24  # values that walks read between two checks for Ctrl-C: some tens of ms
