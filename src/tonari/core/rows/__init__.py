"""Rows of the caller's data: their division into slices, random draws, and lists or rules for each query.

slices.py    splits ranges of rows into slices of a given size
draws.py     random numbers, one stream for each purpose
listed.py    searches in which each query has its own list of points
allowed.py   the points that each query of a radius search may find
"""
