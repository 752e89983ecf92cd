"""Graphs from the results of other libraries.

made_from.py   the methods of KNNGraph
arrays.py      lists in any order, with self anywhere or nowhere
csr.py         sparse matrices
faiss.py       (D, I) of faiss
"""
