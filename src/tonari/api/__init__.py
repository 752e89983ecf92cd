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
verifying.py   verify: compares the answer of another library with the exact answer

Three modules support arguments that several functions have: filtered.py for `where`, `exclude` and groups; changed.py
for metrics and weights that require transformed rows; and differentiable.py for gradients. one_radius.py prepares rows
for the clusters of `tonari.estimators`. sparse_rows.py answers the functions for sparse rows, by the searches of
sparse_among.py.

`plan` and `explain` are in `tonari.methods`, `select_k` in `tonari.select`.
"""
