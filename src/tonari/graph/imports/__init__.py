"""Graphs from the results of other libraries.

made_from.py   the import methods of KNNGraph
arrays.py      arrays of lists in any order, which may contain the point itself in any column
csr.py         sparse matrices of distances
faiss.py       the arrays (D, I) that a search of faiss returns
"""
