"""Tuned numbers of the cost model: how cores share the build of a tree, and where costs stop growing.

The comment above a group names the benchmark cases that time it, and the machine whose timings chose the numbers.
Values in brackets are the alternatives that ``python -m benchmarks tune costs`` times.
"""

# Case: kdtree build-d10 on cpu. Chosen on: an unrecorded machine.
# How cores share the build of a tree.
TASK_POINTS = 16_384  # maximum number of points of a node that one core builds within its cache [8192, 16384, 32768]
SHARED_ROWS = 1 << 18  # minimum number of rows of a pass that threads share [1 << 17, 1 << 18, 1 << 19]

# Case: kdtree auto-uniform-d2, auto-uniform-d3 on cpu. Chosen on: two cores of an EPYC of family 25.
# Brute force in few dimensions.
CROWDED_QUERIES = 1000  # number of first queries that take longer than later ones, in up to three dimensions
MOST_BLURRED = 100.0  # maximum extra cost of a pair, relative to its usual cost, if a screen cannot separate candidates

# Not measured by a case. Chosen on: an EPYC without AVX-512 and a Xeon of model 207, 2026-11-26, 10,000 to 1,000,000
# points of 2 to 12 dimensions. With at most this many columns the screen begins in float32: products are then a small
# part of its time, and int8 and bfloat16 would leave many rows for float32 if values span many times the distance of a
# neighbour.
FEW_COLUMNS = {"avx2": 12, "avx512": 12, "amx": 12}
