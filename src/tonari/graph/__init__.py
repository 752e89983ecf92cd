"""The k-nearest-neighbour graph.

knn_graph.py     the container: its check, exports and file
recall.py        how many of the true neighbours it has
approximate.py   what `tonari.knn_graph` does where a graph may miss neighbours
merge.py         two graphs into one (wang2021, section 5), and points added to one
"""
