"""The verbs. Arguments are checked here, before any work.

searching.py   search, search_to_file
index.py       Index: points prepared once, searched many times, and changed; its verbs are in index_search.py,
               index_radius.py and index_changes.py, its file is index_file.py's. It has a State (state.py) of
               parts (part.py) with a segment each (segment.py), which balancing.py merges
graphs.py      knn_graph, merge
kth.py         kth_distance
spanning.py    mutual_reachability_tree
radius.py      radius_search, radius_count, radius_graph
pairing.py     pairs
shards.py      build_graph, build_neighbors: more points than a memory holds

`plan` and `explain` are in `tonari.methods`, `select_k` in `tonari.select`.
"""
