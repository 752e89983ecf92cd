"""k-selection on CUDA: what auto takes, and lists of neighbours put in order and merged.

dispatch.py     a request goes to its method
threshold.py, hierarchical.py, bitonic.py, radix.py   the methods
keys.py, survivors.py   what they share
order.py        lists ordered by (value, index)
merge.py        lists over parts of the points become one
"""
