"""Order neighbour lists on CUDA by (value, index), and merge lists from several parts of the points.

order.py    orders and merges lists of equal length
merge.py    merges lists found in parts of the points
ragged.py   orders and joins lists of different lengths
"""
