"""The k-nearest-neighbour graph.

knn_graph.py     the container: its checks, exports and file
build.py         `tonari.knn_graph`
approximate.py   its part for graphs that may lack neighbours
recall.py        the share of the true neighbours that a graph has
merge.py         merging two graphs (wang2021, section 5), and adding points to one
"""
