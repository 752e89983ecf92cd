"""The k-nearest-neighbour graph.

lists.py         the record that a graph consists of, and the checks of its lists
build.py         build the lists for a set of points: exact, or up to a recall (approximate.py)
sides.py         two sets of points and their graphs, checked against each other
merging.py       merge two graphs (wang2021, section 5), and add points to a graph
recall.py        measure the recall of a graph
csr.py           export a graph as a sparse matrix
knn_graph.py     the public container: checks, exports, file format
"""
