"""Base classes of the estimators.

searching.py          of all estimators: checks of parameters and rows, and the Index
nearest.py            of estimators with `n_neighbors`: kneighbors, kneighbors_graph
within.py             of estimators with `radius`: radius_neighbors, radius_neighbors_graph
classifying.py        of both classifiers: classes and scores
predicting.py         of predictions from the k nearest rows: their parameters
predicting_within.py  of predictions from the rows within a radius: lists and weights, block by block
"""
