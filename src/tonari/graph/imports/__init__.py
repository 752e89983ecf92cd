"""Graphs from the results of other libraries.

made_from.py   the methods of KNNGraph
arrays.py      lists in any order, which may contain self in any column
csr.py         sparse matrices
faiss.py       (D, I) of faiss
"""
