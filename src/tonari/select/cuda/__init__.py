"""k-selection on CUDA: the methods that auto uses, and ordering and merging of neighbour lists.

dispatch.py     runs the method of a request
threshold.py, hierarchical.py, bitonic.py, radix.py   the methods
keys.py, compaction.py, survivors.py   shared by the methods
order.py        lists ordered by (value, index)
merge.py        merges lists found in parts of the points
"""
