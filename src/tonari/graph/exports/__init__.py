"""A graph for the libraries that take one: one module for each, which knows what it reads and what it would misread.

to_embeddings.py   the methods of KNNGraph for UMAP, openTSNE, scikit-learn and scanpy
to_clusterings.py  those for HDBSCAN
to_pictures.py     those for a page in a browser, matplotlib, and notebooks
to_graphs.py       those for SciPy, PyTorch Geometric, igraph, networkx and Arrow
common.py          what several need: lists with or without self, and what they refuse

csr.py             scipy.sparse.csr_matrix
weights.py         how much alike the ends of each edge are, as such a matrix
umap.py            UMAP's precomputed_knn; umap_index.py is the object by which it embeds new points, searcher.py what
                   that needs of an index
opentsne.py        openTSNE's knn_index; opentsne_index.py also searches for new points
sklearn.py         metric="precomputed"
scanpy.py          obsp and uns of an AnnData
hdbscan.py         core distances, mutual reachability, hdbscan and fast_hdbscan
edge_index.py      a LongTensor of edges
igraph.py, networkx.py   graphs of these libraries
arrow.py           a table of fixed-size lists
"""
