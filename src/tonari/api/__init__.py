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

A function first inspects its metric and its rows. If the caller defines the distances, user_metrics/ computes the
answer; if the rows are sparse, sparse/ does. wrappers/ handles shared arguments that transform the rows (weights),
restrict the points that may be found (filters), or change the results (ties, gradients). one_radius.py prepares rows
for the clustering estimators in `tonari.estimators`.

`select_k` is in `tonari.select`.
"""
