"""Neighbours in files.

ground_truth.py        the true neighbours of queries, as Big-ANN stores them
ground_truth_part.py   the same, written in place, block by block
found.py               neighbours in files of other programs: HDF5, Parquet, Arrow, lists of edges
pairs.py               pairs of points
"""
