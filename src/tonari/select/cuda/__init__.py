"""k-selection on CUDA: the methods that method="auto" uses, and functions that order and merge neighbour lists.

dispatch.py     runs the method of a request
threshold.py, hierarchical.py, bitonic.py, radix.py   the methods
keys.py, compaction.py, survivors.py   shared by the methods
order.py        orders lists by (value, index)
merge.py        merges lists found in parts of the points
"""
