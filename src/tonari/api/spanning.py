"""`tonari.mutual_reachability_tree`: the minimum spanning tree of HDBSCAN."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tonari import inputs
from tonari.api import tuning
from tonari.api.index.segments.segment import Segment
from tonari.api.wrappers.changed import on_changed_rows
from tonari.api.wrappers.copies import counting_copies
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.filters.rules import Rules
from tonari.filters.scope import on_host
from tonari.filters.searches import asking
from tonari.graph.building.build import build_lists
from tonari.kdtree.cpu.method import TreeOnCpu
from tonari.kdtree.cpu.tree import Tree
from tonari.kdtree.plan import TreePlan
from tonari.methods.call import Call
from tonari.methods.options import Options, SearchOptions, shares
from tonari.methods.places.points import Points
from tonari.spanning.apart import Projections
from tonari.spanning.boruvka import Bounds, Ids, Search, spanning_edges
from tonari.spanning.by_tree import MOST_POINTS, spanning_edges_by_tree
from tonari.spanning.tree import SpanningTree, tree_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@in_default_floats
@inputs.without_gradients(
    "compute the distances of its edges in torch, or use tonari.knn_graph with differentiable=True"
)
@counting_copies
@on_changed_rows
@shares(SearchOptions)
def mutual_reachability_tree(
    points: Any,
    min_samples: int,
    *,
    metric: str = "euclidean",
    **shared: Unpack[SearchOptions],
) -> SpanningTree:
    """Find the minimum spanning tree by mutual reachability distance, which HDBSCAN uses, exactly.

    The weight of a pair of points is the maximum of their distance and their two core distances. The core distance of a
    point is the distance to its min_samples-th nearest point, counting the point itself (Campello, Moulavi and Sander,
    Density-based clustering based on hierarchical density estimates, PAKDD 2013, definitions 1 to 3 and section 3.2).
    All distances are the exact ones that :func:`knn_graph` returns.

    Parameters
    ----------
    points : array of shape (n, d)
    min_samples : int
        1 to n, counting the point itself, as in scikit-learn's HDBSCAN. With 1, core distances are 0, and the tree is
        the plain minimum spanning tree of the points. The methods of :class:`KNNGraph` do not count the point itself:
        the core distances here equal ``graph.core_distances(min_samples - 1)``.
    metric : str
        Any metric except "inner_product", which is not a distance.
    method : str
        As for :func:`search`.
    memory : int or str, optional
        The budget of each search, as for :func:`search`, including the lists that the search returns. Lists and edges
        that are kept between searches are not included: about 50 n (min_samples + 5) bytes of host memory.
    progress : None, bool or callable(done, total)
        Counts edges of the tree.

    Returns
    -------
    SpanningTree
        NumPy arrays: `edges` of shape (n - 1, 2) and their `weights` of shape (n - 1,), with the dtype of distances in
        :func:`search`. Edges are ordered by (weight, smaller end, larger end). If
        several minimum spanning trees exist, the one whose edges are first in this order is returned, on every machine
        and device. For "haversine", "minkowski:p", "hellinger" and "braycurtis", edges are ordered by their values
        before the arcsine, the root or the division, instead of by their weights (see :func:`search`).

    Raises
    ------
    TypeError, ValueError
        As for :func:`knn_graph`; also if min_samples exceeds the number of points, or the metric is a similarity.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    >>> tree = tonari.mutual_reachability_tree(line, min_samples=3)
    >>> tree.edges.tolist(), tree.weights.tolist()
    ([[0, 1], [0, 2], [1, 3]], [3.0, 3.0, 6.0])
    """
    options = Options.of(metric, shared)
    call = Call.of({"points": points}, options)
    if call.metric.descending:
        raise Unsupported(f"metric={call.metric.name!r}: is a similarity, but a tree needs distances; use 'cosine'")
    if call.metric.missing:
        raise Unsupported(
            f"metric={call.metric.name!r}: rows without a common column have no distance, so there may be no tree; "
            "fill the gaps first, as by tonari.estimators.KNNImputer"
        )
    rows = call.rows(points, "points")
    n = len(rows)
    min_samples = inputs.check_count(min_samples, "min_samples")
    if min_samples > n:
        raise ValueError(f"min_samples={min_samples}: there are {n} points, expected at most as many")
    if n == 1:
        value = np.float64 if inputs.name_of_dtype(rows) == "float64" else np.float32
        return SpanningTree(np.empty((0, 2), index_dtype(n)), np.empty(0, value))
    shown = dataclasses.replace(call, progress=None if callable(call.progress) else call.progress)
    built = build_lists(rows, min(min_samples - 1 + tuning.LISTED_MORE, n - 1), shown)
    lists = built.in_numpy()
    core = lists.distances[:, min_samples - 2] if min_samples > 1 else np.zeros(n, lists.distances.dtype)
    with Progress(call.progress, total=n - 1, seconds=None, label="spanning tree", unit="edge") as bar:
        known = _tree_of(rows, call, built.method)
        if known is not None:
            found = spanning_edges_by_tree(known.tree, known.plan, lists, core, bar)
        else:
            found = spanning_edges(lists, core, _searcher(rows, call), bar, _bounds_of(rows, call), call.memory)
    return tree_of(found, n)


class _Known(NamedTuple):
    """A k-d tree of the points, and its plan."""

    tree: Tree
    plan: TreePlan


def _tree_of(rows: Any, call: Call, made_by: str) -> _Known | None:
    """Build a k-d tree that finds the spanning tree, if this is expected to be fast; otherwise return None.

    The tree is built if a k-d tree already found the neighbour lists (`made_by`), or if there are few points. It is not
    built for points on CUDA, or if it does not fit into memory.
    """
    if not isinstance(rows, np.ndarray) or call.place.devices or len(rows) > MOST_POINTS:
        return None
    few = call.method == "auto" and rows.size <= tuning.WALKED_VALUES and call.metric.in_trees
    if made_by != "kdtree" and not few:
        return None
    method = TreeOnCpu()
    try:
        plan = method.plan(Points(rows, call).problem(rows, 1, self_join=True))
    except BudgetExceeded:
        return None
    return _Known(method.prepare(rows, plan, False).tree, plan)


def _searcher(points: Any, call: Call) -> Search:
    """Return a function that finds, for each of several points, its nearest points in other components.

    A call with few rows searches points that the first such call prepared. A call with many rows chooses its own
    method, since the rows then belong to large components and their neighbours are far away; if memory is limited, it
    first frees the prepared points.
    """
    prepared: list[Points] = []
    call = dataclasses.replace(call, progress=False)

    def nearest_outside(rows: Ids, k: int, labels: Ids) -> Neighbors:
        many = len(rows) > tuning.MANY * len(points)
        if many and call.memory is not None:
            prepared.clear()
        if not many and not prepared:
            prepared.append(Segment(points, call).those(None))
        those = Points(points, call) if many else prepared[0]
        outside = Rules(m=len(rows), n=len(points), query_groups=labels[rows], point_groups=labels, same=False)
        found = asking.nearest(those, inputs.rows_at(points, rows), k, outside, False)
        return Neighbors(*on_host(found))

    return nearest_outside


def _bounds_of(rows: Any, call: Call) -> Bounds | None:
    """Return a function that gives lower bounds of distances to other components.

    Return None for metrics without such a bound.
    """
    if not (isinstance(rows, np.ndarray) and call.metric.squares):
        return None
    return Projections(inputs.as_floats(rows), squared=not call.metric.root, memory=call.memory).bounds
