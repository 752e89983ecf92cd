"""How estimators compute answers from the fitted rows and from lists of neighbours.

rows.py          the fitted rows, and how they are searched
votes.py         weights of the k nearest, and the sums of a classifier's and a regressor's predictions
votes_within.py  the same for lists of different lengths
blocks.py        lists within a radius by blocks, within a memory budget
components.py    connected components of pairs, block by block
"""
