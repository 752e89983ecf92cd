"""tonari (隣, "next door"): k-nearest-neighbour search and k-NN graphs, exact first.

    points, queries          any array
        │  tonari.arrays     checked once, at the border
        ▼
    metric form              tonari.metrics, tonari.exact.prepared
        │                    gemm form: a(x) - 2 <q', x'>, or elementwise form: sum of f(q_i, x_i)
        ▼
    schedule                 tonari.exact.engine      which block of queries meets which slice of points
        ▼
    screen                   native/screen_*.cpp      low precision; the least of each group of points
        ▼
    select                   native/row_block.cpp     running thresholds, buffers of survivors
        ▼
    refine                   native/refine*.cpp       exact float64 values; order by (returned value, index)
        ▼
    Neighbors                tonari.results           merge_neighbors joins lists found over parts
        ▼
    KNNGraph                 tonari.graph             quality, exports, files

That is method="exact". method="kdtree" (`tonari.kdtree`) takes the place of schedule and screen in few dimensions: a
tree of boxes around the points, of which a query looks at few; its answer has the same bits. `tonari.choosing` takes
one of the two for method="auto", by what `tonari.costs` expects. method="nn-descent" (`tonari.descent`) builds graphs
that may miss neighbours, up to a recall that is measured, and merges graphs; `tonari.hardness` says how hard points
will be for it.
`tonari.streams` feeds queries that do not fit into memory to a search, and writes what it finds.
`tonari.select` is k-selection by itself: the papers' algorithms by name, on the CPU and on CUDA.
`tonari.engines` says where a verb runs: on the CPU as drawn, or on CUDA, where `tonari.exact.gpu` and
`tonari.kdtree.gpu` take the same steps.
`tonari.planning` stands beside the flow and makes every choice; `tonari.memory` counts what it costs (on CUDA
`tonari.planning_gpu`, `tonari.memory_gpu`; for trees `tonari.planning_tree`, `tonari.memory_tree`, for NN-Descent
`tonari.planning_descent`, `tonari.memory_descent`). Values are defined by
`tonari.reference`; files are read by `tonari.io`; the command line is `tonari.cli`.
"""

from tonari import _startup as _startup  # first: it hears Ctrl-C during the others
from tonari.api import Index, knn_graph, search
from tonari.descent.merge import merge
from tonari.graph import KNNGraph
from tonari.planning import Plan, plan
from tonari.results import Neighbors, merge_neighbors
from tonari.select import Selection, select_k
from tonari.streams.writing import search_to_file

__version__ = "0.1.0"

__all__ = [
    "Index",
    "KNNGraph",
    "Neighbors",
    "Plan",
    "Selection",
    "knn_graph",
    "merge",
    "merge_neighbors",
    "plan",
    "search",
    "search_to_file",
    "select_k",
]
