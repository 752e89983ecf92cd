"""The public functions of the library; they check their arguments before any work begins.

searching.py   search; writing.py: search_to_file
index/         Index: points that are prepared once, searched many times, and changed
graphs.py      knn_graph, merge
kth.py         kth_distance
spanning.py    mutual_reachability_tree
radius.py      radius_search, radius_count, radius_graph
pairing.py     pairs
mutual.py      mutual_neighbors
farthest.py    farthest
shards.py      build_graph, build_neighbors: for more points than fit in memory
planning/      plan, explain, warm: for use before a search
verifying.py   verify: compares the answer of another library with the exact answer

A function first looks at its metric and its rows. given/ answers if the caller defines the distances, and sparse/ if
rows are sparse. arguments/ has the arguments that several functions have and that change the rows, the points that may
be found, or the results. one_radius.py prepares rows for the clusters of `tonari.estimators`.

`select_k` is in `tonari.select`.
"""
