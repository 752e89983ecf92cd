"""Neighbour lists on CUDA: put in order, by value and, for equal values, by index; and merged.

order.py    lists of one length, and merges of them
merge.py    merges lists found in parts of the points
ragged.py   concatenated lists of different lengths
"""
