"""tonari (隣, "next door"): k-nearest-neighbour search and k-NN graphs, exact first.

    points, queries     any array
        │  inputs/      checked once, at the border
        ▼
    method              methods/: which one answers; "auto" compares what each is expected to take
        │
        ▼
    plan                plan.py of exact/, kdtree/, bits/, nn_descent/: every choice, before anything runs
        │
        ├── exact/      brute force: screen at low precision, select, refine in float64, a certificate for every row
        ├── kdtree/     a tree of boxes around the points, for few dimensions; the same bits as brute force
        ├── bits/       rows of bits: their differing or shared bits, counted
        └── nn_descent/ approximate graphs, up to a recall that is measured
        ▼
    Neighbors           core/neighbors.py: distances and indices, rows in order
        │
        ▼
    KNNGraph            graph/: recall, merging, export, files
        ▲
        │  shards/      graphs of more points than a memory holds: tasks that leave files behind

Rooms import downwards only:

    cli  estimators  compat  debug  the command line; scikit-learn's classes; lookalikes of other libraries; bug reports
    api                             the verbs: search, Index, knn_graph, build_graph, radius_search, pairs
    shards                          graphs beyond one memory, in a directory
    graph  streams  filters         graphs; queries that do not fit into memory; which points may be found
    spanning                        minimum spanning trees of points
    methods                         which method answers, and where
    nn_descent  kdtree  exact  bits rooms of one shape: plan, memory, reference, cpu/, cuda/ with cuda/kernels/
    select                          k-selection by itself, and lists of neighbours put in order and merged
    cuda  costs                     what every method needs on CUDA; what each takes, in seconds
    metrics  inputs  io             what is compared; what comes in; files
    core                            records, threads, progress, errors
"""

from tonari import _startup as _startup  # first: it hears Ctrl-C during the others
from tonari.api import (
    Index,
    build_graph,
    build_neighbors,
    knn_graph,
    kth_distance,
    merge,
    mutual_reachability_tree,
    pairs,
    radius_count,
    radius_graph,
    radius_search,
    search,
    search_to_file,
)
from tonari.core.neighbors import Neighbors
from tonari.core.pairs import Pairs
from tonari.core.plan import Plan
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.core.version import __version__ as __version__
from tonari.graph.directory import open_neighbors
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.explain import Explanation, explain
from tonari.methods.plan import plan
from tonari.methods.warm import warm
from tonari.select import Selection, select_k
from tonari.select.merge import merge_neighbors
from tonari.spanning.tree import SpanningTree

__all__ = [
    "Explanation",
    "Index",
    "KNNGraph",
    "Neighbors",
    "Pairs",
    "Plan",
    "RadiusNeighbors",
    "Selection",
    "SpanningTree",
    "build_graph",
    "build_neighbors",
    "explain",
    "knn_graph",
    "kth_distance",
    "merge",
    "merge_neighbors",
    "mutual_reachability_tree",
    "open_neighbors",
    "pairs",
    "plan",
    "radius_count",
    "radius_graph",
    "radius_search",
    "search",
    "search_to_file",
    "select_k",
    "warm",
]
