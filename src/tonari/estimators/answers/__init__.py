"""Computation of predictions and clusters from the fitted rows and from neighbour lists.

rows.py          search of the fitted rows
votes.py         weights of the k nearest, and predictions of classifiers and regressors from them
votes_within.py  the same for the neighbours within a radius, whose lists have different lengths
blocks.py        neighbours within a radius, found block by block within a memory budget
components.py    connected components of a graph whose edges are added block by block
"""
