"""k-selection on CUDA: the methods that method="auto" uses, and functions that order and merge neighbour lists.

dispatch.py     runs the method of a request
threshold.py, hierarchical.py, bitonic.py, radix.py   the methods
parts.py        the launches of "threshold" for few long rows
keys.py, compaction.py, survivors.py   shared by the methods
ordering/       orders neighbour lists by (value, index), so that ties go to the smaller index; merges and joins them
kernels/        the kernels, and in registers/ what all of them share
"""
