"""The rows of a call.

points.py         the points: replays a captured search of them, or chooses a method and runs it
place.py          the place where a call runs: the CPU; place_cuda.py: CUDA devices; where.py selects it
no_queries.py     answers to calls without queries
value_range.py    values beyond the range of their type, which are refused
"""
