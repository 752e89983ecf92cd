"""Neighbour lists on CUDA: put in order, by value and, for equal values, by index; and merged.

order.py    orders and merges lists of equal length
merge.py    merges lists found in parts of the points
ragged.py   orders and joins lists of different lengths
"""
