"""The k-nearest-neighbour graph.

lists.py         the internal record of a graph's neighbour lists and properties, and the checks of the lists
building/        build the lists for a set of points, merge two graphs, add, remove and replace points
recall.py        measure the recall of a graph
changing.py      the methods that add, remove and replace points
reshaping.py     shorter lists, some of the points, another order of the points
statistics.py    distances, local dimension, hubs, histograms
spectral.py      a map in two dimensions
page/            a page about a graph, in HTML
plots.py         plots of a graph with matplotlib
structure.py     components, reverse neighbours, k-occurrence, overlap of two graphs
exports/         a graph for UMAP, openTSNE, scikit-learn, scanpy, HDBSCAN, PyTorch Geometric, igraph, networkx, Arrow
imports.py       graphs from arrays, sparse matrices, and results of faiss
files/           a graph in an .npz file; a graph, or the neighbours of queries, as a directory of mapped arrays
knn_graph.py     the public container and its checks
"""
