"""The results of the public functions.

neighbors.py          the k nearest points of each row, by all methods
radius_neighbors.py   the points within a radius of each row, in lists of different lengths
pairs.py              pairs of points that are near each other
html.py               the tables by which notebooks show them
"""
