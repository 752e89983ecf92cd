"""The verbs of the library: they check their arguments before any work begins.

searching.py   search, search_to_file
index.py       Index: points prepared once, searched many times, and changed. Its methods are in index_search.py,
               index_radius.py and index_changes.py, its file format in index_file.py. An Index has a State (state.py),
               a State has Parts (part.py), each Part has a Segment (segment.py), and balancing.py merges segments
graphs.py      knn_graph, merge
kth.py         kth_distance
spanning.py    mutual_reachability_tree
radius.py      radius_search, radius_count, radius_graph
pairing.py     pairs
shards.py      build_graph, build_neighbors: more points than a memory holds

`plan` and `explain` are in `tonari.methods`, `select_k` in `tonari.select`.
"""
