"""Exports of a graph to other libraries: one module for each library, with the form that it expects.

methods.py         the export methods of KNNGraph; each one is a function that one of the modules below defines
to_pictures.py     the methods that show a graph: an HTML page, plots with matplotlib, a table in notebooks
common.py          shared helpers: lists with or without self, and refusals

csr.py             scipy.sparse.csr_matrix
weights.py         a SciPy matrix whose entries measure the similarity of the two points of each edge
embeddings/        UMAP's precomputed_knn and openTSNE's knn_index, with and without a search for new points
sklearn.py         metric="precomputed"
scanpy.py          obsp and uns of an AnnData
hdbscan.py         core distances, mutual reachability, hdbscan and fast_hdbscan
edge_index.py      a LongTensor of edges
igraph.py, networkx.py   graphs of these libraries
arrow.py           a table of fixed-size lists
"""
