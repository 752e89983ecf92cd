"""The verbs. Arguments are checked here, before any work.

searching.py   search, search_to_file
index.py       Index: points prepared once, searched many times; index_radius.py, its part for radii
graphs.py      knn_graph, merge
kth.py         kth_distance
radius.py      radius_search, radius_count, radius_graph
pairing.py     pairs
shards.py      build_graph, build_neighbors: more points than a memory holds

`plan` and `explain` are in `tonari.methods`, `select_k` in `tonari.select`.
"""

from tonari.api.graphs import knn_graph, merge
from tonari.api.index import Index
from tonari.api.kth import kth_distance
from tonari.api.pairing import pairs
from tonari.api.radius import radius_count, radius_graph, radius_search
from tonari.api.searching import search, search_to_file
from tonari.api.shards import build_graph, build_neighbors

__all__ = [
    "Index",
    "build_graph",
    "build_neighbors",
    "knn_graph",
    "kth_distance",
    "merge",
    "pairs",
    "radius_count",
    "radius_graph",
    "radius_search",
    "search",
    "search_to_file",
]
