"""k-selection on CUDA: the methods that method="auto" uses, and functions that order and merge neighbour lists.

dispatch.py     runs the method of a request
threshold.py, hierarchical.py, bitonic.py, radix.py, parts.py   the methods
keys.py, compaction.py, survivors.py   shared by the methods
lists/          neighbour lists: ordered by value, ties by index; merged; concatenated
kernels/        the kernels: one file per method, and registers/, which all of them share
"""
