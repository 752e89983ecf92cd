"""The verbs. Arguments are checked here, before any work.

    searching.py   search, search_to_file
    index.py       Index: points prepared once, searched many times

`knn_graph` and `merge` are in `tonari.graph`, `plan` in `tonari.methods`, `select_k` in `tonari.select`.
"""

from tonari.api.index import Index
from tonari.api.searching import search, search_to_file
from tonari.graph.build import knn_graph

__all__ = ["Index", "knn_graph", "search", "search_to_file"]
