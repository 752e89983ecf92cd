"""k-selection on CUDA: the methods that method="auto" uses, and functions that order and merge neighbour lists.

dispatch.py     runs the method of a request
threshold.py, hierarchical.py, bitonic.py, radix.py   the methods
parts.py        the launches of "threshold" for few long rows
keys.py, compaction.py, survivors.py   shared by the methods
order.py        orders and merges lists of equal length, by (value, index)
ragged.py       orders and joins lists of different lengths
merge.py        merges lists found in parts of the points
"""
