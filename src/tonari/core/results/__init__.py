"""The results of the public functions.

neighbors.py          the k nearest points of each row, the result of every method
radius_neighbors.py   the points within a radius of each row, in lists of different lengths
pairs.py              pairs of points that are near each other
html.py               HTML tables, which notebooks show
"""
