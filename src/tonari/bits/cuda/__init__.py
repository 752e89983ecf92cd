"""Rows of bits on CUDA.

plan.py, memory.py   the plan of a search
prepared.py          points on the devices, or in host memory
unpack.py            unpacks each bit to one byte
values.py            the values of all pairs, from a product of bits
pairs.py             yields these values by blocks of queries and slabs of points
search.py            the k nearest points
within.py            all points within a limit
listed.py            the k nearest of the points listed for each query
method.py            the registered method
"""
