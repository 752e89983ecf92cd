"""The k-nearest-neighbour graph.

lists.py         what a graph is made of, and what makes it lists of neighbours
build.py         the lists of a set of points: exact, or up to a recall (approximate.py)
sides.py         two sets of points and their graphs, checked against each other
merging.py       two graphs into one (wang2021, section 5), and points added to one
recall.py        how many of the true neighbours a graph has
csr.py           a graph as a sparse matrix
knn_graph.py     the container that users have: its check, exports and file
"""
