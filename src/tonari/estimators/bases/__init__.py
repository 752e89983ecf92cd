"""Base classes of the estimators.

searching.py   of all estimators: checks of parameters and rows, and the Index
nearest.py     of estimators with `n_neighbors`: kneighbors, kneighbors_graph
within.py      of estimators with `radius`: radius_neighbors, radius_neighbors_graph
predicting.py  of predictions from the k nearest rows, or block by block from the rows within a radius
"""
