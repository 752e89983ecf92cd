"""The device that searches the rows of a call.

points.py         the points, with all searches of them, and answers to calls without queries
place.py          the place where a call runs, and its choice: the CPU; place_cuda.py: CUDA devices
value_range.py    checks for values that have overflowed or underflowed
"""
