"""Computation of predictions and clusters from the fitted rows and from neighbour lists.

votes.py    weights of neighbours, and predictions of classifiers and regressors from them
blocks.py   search of the fitted rows; within a radius block by block, within a memory budget
"""
