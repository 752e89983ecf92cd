"""Searches among rows of bits on CUDA.

plan.py, memory.py   the plan of a search, and its memory
prepared.py          points on the devices, or in host memory
unpack.py            unpacks each bit to a byte
values.py            computes the values of all pairs in a block, by a product of bits
pairs.py             yields these values by blocks of queries and slabs of points
search.py            finds the k nearest points
within.py            finds all points within a limit
listed.py            finds the k nearest points in a list for each query
method.py            the registered method
"""
