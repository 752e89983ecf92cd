"""The rows of a call, and the device that searches them.

points.py         the points, with all searches of them
place.py          the place where a call runs: the CPU; place_cuda.py: CUDA devices; where.py selects it
no_queries.py     answers to calls without queries
value_range.py    checks for values that have overflowed or underflowed
"""
