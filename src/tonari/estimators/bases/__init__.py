"""The classes that the estimators inherit from.

searching.py          the common base: rows that are checked and prepared
nearest.py            kneighbors, kneighbors_graph
within.py             radius_neighbors, radius_neighbors_graph
classifying.py        classes and scores of both classifiers
predicting.py         parameters of predictions by the k nearest
predicting_within.py  lists and weights of predictions by a radius, by blocks
"""
