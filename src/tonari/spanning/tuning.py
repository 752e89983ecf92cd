"""Tuned numbers of spanning trees: the points and entries of one search, and the tasks of one round.

Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune spanning``), if there is
one; brackets contain the values that were tried.
"""

# Case: spanning blobs, cube on cpu. Chosen on: an unrecorded machine.
# The size of each search in Boruvka's rounds (boruvka.py).
ENTRIES = 1 << 22  # maximum number of list entries that one search returns [1 << 20, 1 << 22]
FIRST_ASKED = 64  # number of points of a large component that take part in its first search [16, 64, 256]
GROWTH = 16  # factor by which the number of a component's searching points grows from search to search [4, 16]
LARGE_COMPONENT = 2048  # minimum points of a component whose bounds (apart.py) save searches [1024, 2048, 4096]

# Not measured: a bound of memory.
VALUES = 1 << 22  # maximum number of float64 values in memory at once

# Case: spanning blobs, cube on cpu. Chosen on: EPYC Zen 4.
TASKS_PER_THREAD = 8  # tasks of a round per thread: walks of some leaves take much longer than others [4, 8, 32]

# Not measured.
SLICE_VALUES = 1 << 24  # number of values that walks read between two checks for Ctrl-C: some tens of ms
