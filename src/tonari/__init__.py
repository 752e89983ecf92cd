"""tonari (隣, "next door"): k-nearest-neighbour search and k-NN graphs, exact first.

    points, queries     any array
        │  inputs/      checked once, at the border
        ▼
    Call, Points        methods/call.py, methods/rows/points.py: what was asked for, and of which rows
        │  filters/     which points may be found, if there are rules
        ▼
    Decision            methods/: which method answers; "auto" compares what each is expected to take
        │
        ▼
    plan                plan.py of exact/, kdtree/, bits/, nn_descent/: every choice, before anything runs
        │
        ├── exact/      brute force: screen at low precision, select, refine in float64, a certificate for every row
        ├── kdtree/     a tree of boxes around the points, for few dimensions; the same bits as brute force
        ├── bits/       rows of bits: their differing or shared bits, counted
        └── nn_descent/ approximate graphs, up to a recall that is measured
        ▼
    Neighbors           core/results/neighbors.py: distances and indices, rows in order
        │
        ▼
    KNNGraph            graph/: recall, merging, export, files
        ▲
        │  shards/      graphs of more points than a memory holds: tasks that leave files behind

Rooms import downwards only:

    cli  estimators  compat  debug  the command line; scikit-learn's classes; lookalikes of other libraries; bug reports
    api                             the verbs: search, Index, knn_graph, build_graph, radius_search, pairs
    shards                          graphs beyond one memory, in a directory
    graph  streams  spanning        graphs; queries that do not fit into memory; minimum spanning trees of points
    filters                         which points may be found
    methods                         what was asked for, which method answers, and where
    nn_descent  kdtree  exact  bits rooms of one shape: plan, memory, reference, cpu/, cuda/ with cuda/kernels/
    select                          k-selection by itself, and lists of neighbours put in order and merged
    cuda  costs                     what every method needs on CUDA; what each takes, in seconds
    metrics  inputs  io             what is compared; what comes in; files
    core                            records, threads, progress, errors
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tonari import _startup as _startup  # first: it hears Ctrl-C during the others
from tonari.core.hints import attribute_error
from tonari.core.process import leaving as leaving  # while what runs at exit can be registered
from tonari.core.version import __version__ as __version__

if TYPE_CHECKING:  # what reads programs without running them; at run time _HOMES tells where the names are
    from tonari.api.graphs import knn_graph, merge
    from tonari.api.index.index import Index
    from tonari.api.kth import kth_distance
    from tonari.api.pairing import pairs
    from tonari.api.radius import radius_count, radius_graph, radius_search
    from tonari.api.searching import search, search_to_file
    from tonari.api.shards import build_graph, build_neighbors
    from tonari.api.spanning import mutual_reachability_tree
    from tonari.api.verifying import verify
    from tonari.core.plan import Plan
    from tonari.core.results.neighbors import Neighbors
    from tonari.core.results.pairs import Pairs
    from tonari.core.results.radius_neighbors import RadiusNeighbors
    from tonari.core.trail import recording
    from tonari.graph.directory import open_neighbors
    from tonari.graph.knn_graph import KNNGraph
    from tonari.methods.explain import Explanation, explain
    from tonari.methods.plan import plan
    from tonari.methods.warm import warm
    from tonari.metrics.verification import Verification
    from tonari.select.merge import merge_neighbors
    from tonari.select.request import Selection
    from tonari.select.selection import select_k
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
    "Verification",
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
    "recording",
    "search",
    "search_to_file",
    "select_k",
    "verify",
    "warm",
]

# The module of a name is imported when the name is first used.
_HOMES = {
    "tonari.api.graphs": ("knn_graph", "merge"),
    "tonari.api.index.index": ("Index",),
    "tonari.api.kth": ("kth_distance",),
    "tonari.api.pairing": ("pairs",),
    "tonari.api.radius": ("radius_count", "radius_graph", "radius_search"),
    "tonari.api.searching": ("search", "search_to_file"),
    "tonari.api.shards": ("build_graph", "build_neighbors"),
    "tonari.api.spanning": ("mutual_reachability_tree",),
    "tonari.api.verifying": ("verify",),
    "tonari.core.results.neighbors": ("Neighbors",),
    "tonari.core.results.pairs": ("Pairs",),
    "tonari.core.plan": ("Plan",),
    "tonari.core.results.radius_neighbors": ("RadiusNeighbors",),
    "tonari.core.trail": ("recording",),
    "tonari.graph.directory": ("open_neighbors",),
    "tonari.graph.knn_graph": ("KNNGraph",),
    "tonari.methods.explain": ("Explanation", "explain"),
    "tonari.methods.plan": ("plan",),
    "tonari.methods.warm": ("warm",),
    "tonari.metrics.verification": ("Verification",),
    "tonari.select.merge": ("merge_neighbors",),
    "tonari.select.request": ("Selection",),
    "tonari.select.selection": ("select_k",),
    "tonari.spanning.tree": ("SpanningTree",),
}


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        return _room(name)
    globals()[name] = value = getattr(import_module(home), name)  # the next look finds it without this function
    return value


def _room(name: str) -> ModuleType:
    """Import a room, such as tonari.io."""
    room = f"{__name__}.{name}"
    try:
        if not name.startswith("_"):
            return import_module(room)
    except ModuleNotFoundError as error:
        if error.name != room:  # there is such a room, and something that it needs is missing
            raise
    raise attribute_error(__name__, name, f"module {__name__!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
