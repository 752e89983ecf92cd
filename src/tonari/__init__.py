"""tonari (隣, "next door"): k-nearest-neighbour search and k-NN graphs, exact first.

    points, queries     any array
        │  inputs/      checks of all arguments
        ▼
    Call, Points        methods/call.py, methods/places/points.py: the checked arguments, and the rows that are searched
        │  filters/     the points that each query may find, if the caller restricts them
        ▼
    Decision            methods/: the method that answers; "auto" compares the expected times of all methods
        │
        ▼
    plan                plan.py of each method below: all choices before the run
        │
        ├── exact/        brute force: screen at low precision, select, refine in float64, a certificate for every row
        ├── kdtree/       a tree of boxes around the points, for few dimensions; the same bits as brute force
        ├── bits/         rows of bits, compared by the numbers of their differing or common bits
        ├── missing/      rows with missing values on the CPU, compared by inner products that exact/ computes
        ├── user_metrics/ distances by a function or a matrix of the caller, all of them computed or read
        ├── sparse/       SciPy's compressed rows on the CPU (api/sparse/answers.py); the same bits as for dense rows
        └── nn_descent/   approximate graphs, up to a measured recall
        ▼
    Neighbors           core/results/neighbors.py: distances and indices, in order
        │
        ▼
    KNNGraph            graph/: recall, merging, export, files
        ▲
        │  shards/      graphs of data larger than memory, built by tasks that write files

Each subpackage imports only from the subpackages below it in this list:

    cli  estimators  compat  debug  the command line; scikit-learn's classes; lookalikes of other libraries; bug reports
    api                             the public functions: search, Index, knn_graph, build_graph, radius_search, plan
    shards                          graphs larger than memory, in a directory
    graph  streams  spanning        graphs; streams of queries; minimum spanning trees of points
    filters                         the points that queries may find
    methods                         the record of a call, the choice of the method, and the place where it runs
    nn_descent  kdtree  exact       the methods, with the same modules: plan, memory, reference, cpu/, cuda/
    missing                         rows with missing values; above exact and below kdtree
    bits  user_metrics  sparse      methods for rows of bits, for distances of the caller, and for sparse rows
    select                          k-selection, and functions that order and merge neighbour lists
    cuda  costs                     CUDA tools that all methods share; expected times of plans in seconds
    metrics  io                     metrics; files
    inputs                          checks of arguments
    core                            records, threads, progress, errors
"""

from importlib import import_module
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tonari import _startup as _startup  # first, to handle Ctrl-C during the other imports
from tonari.core.hints import attribute_error
from tonari.core.process import leaving as leaving  # early, since exit handlers cannot be registered later
from tonari.core.process.garbage import collection_off
from tonari.core.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers; at run time, _HOMES has the module of each name
    from tonari.api.farthest import farthest
    from tonari.api.graphs import knn_graph, merge
    from tonari.api.index.index import Index
    from tonari.api.kth import kth_distance
    from tonari.api.mutual import mutual_neighbors
    from tonari.api.pairing import pairs
    from tonari.api.planning.explain import Explanation, explain
    from tonari.api.planning.plan import plan, warm
    from tonari.api.radius import radius_count, radius_graph, radius_search
    from tonari.api.searching import search
    from tonari.api.shards import build_graph, build_neighbors
    from tonari.api.spanning import mutual_reachability_tree
    from tonari.api.verifying import verify
    from tonari.api.writing import search_to_file
    from tonari.core.plan import Plan
    from tonari.core.results.neighbors import Neighbors
    from tonari.core.results.pairs import Pairs
    from tonari.core.results.radius_neighbors import RadiusNeighbors
    from tonari.core.trail import recording
    from tonari.graph.files.directory import open_neighbors
    from tonari.graph.knn_graph import KNNGraph
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
    "farthest",
    "knn_graph",
    "kth_distance",
    "merge",
    "merge_neighbors",
    "mutual_neighbors",
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
    "tonari.api.farthest": ("farthest",),
    "tonari.api.graphs": ("knn_graph", "merge"),
    "tonari.api.index.index": ("Index",),
    "tonari.api.kth": ("kth_distance",),
    "tonari.api.mutual": ("mutual_neighbors",),
    "tonari.api.pairing": ("pairs",),
    "tonari.api.radius": ("radius_count", "radius_graph", "radius_search"),
    "tonari.api.searching": ("search",),
    "tonari.api.shards": ("build_graph", "build_neighbors"),
    "tonari.api.spanning": ("mutual_reachability_tree",),
    "tonari.api.verifying": ("verify",),
    "tonari.api.writing": ("search_to_file",),
    "tonari.core.results.neighbors": ("Neighbors",),
    "tonari.core.results.pairs": ("Pairs",),
    "tonari.core.plan": ("Plan",),
    "tonari.core.results.radius_neighbors": ("RadiusNeighbors",),
    "tonari.core.trail": ("recording",),
    "tonari.graph.files.directory": ("open_neighbors",),
    "tonari.graph.knn_graph": ("KNNGraph",),
    "tonari.api.planning.explain": ("Explanation", "explain"),
    "tonari.api.planning.plan": ("plan", "warm"),
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
    with collection_off():  # an import creates many objects and no garbage
        if _cuda_is_used():
            import_module("tonari.cuda.compiling.ahead").begin_on_cuda()  # loads Triton in threads
        globals()[name] = value = getattr(import_module(home), name)  # later accesses do not call this function
    return value


def _cuda_is_used() -> bool:
    """Whether this process has used CUDA, and will probably use it in the requested function."""
    asks = getattr(modules.get("torch.cuda"), "is_initialized", None)  # absent while torch is being imported
    return asks is not None and asks()


def _room(name: str) -> ModuleType:
    """Import a room, such as tonari.io."""
    room = f"{__name__}.{name}"
    try:
        if not name.startswith("_"):
            return import_module(room)
    except ModuleNotFoundError as error:
        if error.name != room:  # the subpackage exists, but a module that it imports is missing
            raise
    raise attribute_error(__name__, name, f"module {__name__!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
