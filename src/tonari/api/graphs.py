"""The verbs of graphs: `tonari.knn_graph` and `tonari.merge`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tonari import inputs
from tonari.api.changed import on_changed_rows
from tonari.api.differentiable import carries
from tonari.core.floats import in_default_floats
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.filters.arguments import Given
from tonari.graph.approximate import GraphOptions
from tonari.graph.build import build_allowed, build_lists, repeated_lists
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.merging import merge_lists
from tonari.methods import repeated
from tonari.methods.call import Call
from tonari.metrics import TritonFunction


@in_default_floats
@on_changed_rows
def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str | TritonFunction = "euclidean",
    weights: Any = None,
    method: str = "auto",
    recall: float | None = None,
    seed: int | None = None,
    start: str | KNNGraph | None = None,
    update: str | None = None,
    include_self: bool = False,
    where: Any = None,
    batch: Any = None,
    differentiable: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | None = None,
) -> KNNGraph:
    """Build the k-nearest-neighbour graph of a set of points: exactly, or by NN-Descent to a given recall.

    Parameters that are not listed are those of :func:`search`.

    Parameters
    ----------
    metric : str or Triton function
        As for :func:`search`; for "nn-descent" on CUDA also a function of yours, decorated with ``triton.jit``, of two
        float64 tensors q and x that is applied to the elements of two points and summed: f(q, x) >= 0, and 0 if they
        are equal. The name of the graph's metric is then "triton:" and the function's name.
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour: it is excluded by row identity, so its
        duplicates are found.
    method : str
        As for :func:`search`, or "nn-descent": approximate, for many points in more than a few dimensions, on the CPU
        or on one CUDA device. Its distances are those of exact search, and it finds nearly all true neighbours; the
        same seed gives the same graph for any number of threads, except with ``update="gnnd"``. "auto" takes it if
        `recall` is given and it is expected to be clearly faster, and returns the exact graph if NN-Descent does not
        reach the recall.
    recall : float, optional
        Share of the true neighbours to find, below 1: NN-Descent continues until a random sample of rows, compared
        with the exact answer, shows with 97.5 % confidence that the graph has it, and warns if it cannot reach it. For
        "nn-descent", where the default is 0.99, and for "auto", which is exact without it.
    seed : int, optional
        Seed of the random choices of NN-Descent. Default: 0.
    start : "clusters", "random" or KNNGraph, optional
        What NN-Descent starts from: members of near clusters (default), random neighbours (default of "gnnd"), or the
        neighbours in a graph of the same points, of any metric or k.
    update : "pull" or "gnnd", optional
        For ``method="nn-descent"`` on CUDA: what a round does with the lists. "pull" (default): each point reads the
        lists of its neighbours, and writes its own. "gnnd": the rounds of wang2021 (section 4), in which points insert
        into each other's lists, behind locks; by default from a random start. It supports euclidean, sqeuclidean,
        cosine, correlation and inner_product. Its distances are those of exact search too, but another run with the
        same seed may find other neighbours.
    include_self : bool
        Put the point itself into column 0 (at distance 0; at <x, x> for "inner_product"), as one of the k columns;
        k is then from 1 to n.
    where : bool array of shape (n,), optional
        Points that may be neighbours. Every point still has a row: those that may not be neighbours have theirs, too.
        For exact graphs, as is `batch`.
    batch : int array of shape (n,), optional
        The group of each point, such as the number of its cloud: neighbours are of the same group. Any whole numbers,
        in any order; of lengths, they are ``numpy.repeat(numpy.arange(len(lengths)), lengths)``. Rows of points that
        have fewer than k possible neighbours end with -1 at distance inf (-inf for "inner_product").
    differentiable : bool
        Let gradients flow from the distances to both of their points, as for :func:`search`.

    Returns
    -------
    KNNGraph
        Its arrays are of the same library and on the same device as the points, as those of :func:`search` are as the
        queries. The `report` of an approximate graph has the measured recall.

    Warns
    -----
    UserWarning
        ``method="nn-descent"`` did not reach the recall.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.knn_graph(line, k=1).indices.ravel().tolist()
    [1, 0, 1]
    >>> tonari.knn_graph(line, k=1, batch=[0, 1, 1]).indices.ravel().tolist()
    [-1, 2, 1]
    """
    key = None
    if (
        recall is seed is threads is where is batch is memory is None
        and start is update is None
        and plan is None
        and include_self is False
        and differentiable is False
    ):
        key = repeated.key_of(points, points, k, "graph", metric, method, device)
        known = repeated_lists(key, points, progress)
        if known is not None:
            return KNNGraph.of_lists(known)
    call = Call.of(
        {"points": points},
        metric=metric,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
        graph=True,
    )
    carry = carries(differentiable, points, points, call.metric.name)
    begin = start.lists if isinstance(start, KNNGraph) else start
    options = GraphOptions(recall=recall, seed=seed, start=begin, update=update, plan=plan, include_self=include_self)
    given = Given(where=where, batch=batch)
    lists = build_allowed(points, k, call, given, options) if given else build_lists(points, k, call, options, key)
    found = carry(lists.found)
    return KNNGraph.of_lists(lists if found is lists.found else replace(lists, found=found))


@in_default_floats
@inputs.without_gradients("use tonari.knn_graph of all points with differentiable=True")
def merge(
    graph_a: KNNGraph,
    graph_b: KNNGraph,
    points_a: Any,
    points_b: Any,
    *,
    recall: float = 0.99,
    seed: int = 0,
    update: str | None = None,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> KNNGraph:
    """Join the graphs of two sets of points into the graph of both.

    Parameters
    ----------
    graph_a, graph_b : KNNGraph
        With the same metric, k and include_self; exact or approximate.
    points_a, points_b : arrays of shape (n_a, d) and (n_b, d)
        The points of the graphs, of the same dtype, both in host memory or both on one device. The distances of 64
        rows of each graph are recomputed: a graph of other points, or of these in another order, is refused.
    recall : float
        Share of the true neighbours to find for the points of either side, as for :func:`tonari.knn_graph`. Neighbours
        that a graph lacks on its own side are not searched for.
    seed : int
        Seed of the random choices.
    update : "pull" or "gnnd", optional
        On CUDA, what the rounds do, as for :func:`tonari.knn_graph`; with "gnnd" they are those of wang2021's merge
        (GGM, section 5.1). If one side is small, all pairs are compared, and there are no rounds.
    device, threads, memory, progress
        As for :func:`tonari.knn_graph`. A copy of all points is needed in addition to `memory`, unless both are slices
        of one array, one after the other; for more points than memory holds there is :func:`tonari.build_graph`.

    Returns
    -------
    KNNGraph of n_a + n_b points
        Points of b have their number plus n_a. The arrays are of the same library and on the same device as points_a.
        Two exact graphs of which one is small give an exact graph; otherwise `report` has the measured recall, of the
        side where it is lower.

    Raises
    ------
    TypeError, ValueError
        As for :func:`tonari.knn_graph`; graphs or points that do not match; a graph that was built from other points,
        naming the row and the neighbour.

    Warns
    -----
    UserWarning
        The recall was not reached.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    >>> left, right = tonari.knn_graph(line[:2], k=1), tonari.knn_graph(line[2:], k=1)
    >>> tonari.merge(left, right, line[:2], line[2:]).indices.ravel().tolist()
    [1, 0, 1, 2]
    """
    for name, graph in (("graph_a", graph_a), ("graph_b", graph_b)):
        if not isinstance(graph, KNNGraph):
            raise TypeError(f"{name}: expected a tonari.KNNGraph, got {type(graph).__name__}")
    call = Call.of(
        {"points_a": points_a, "points_b": points_b},
        metric=graph_a.metric,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    pairs = (graph_a.lists, points_a), (graph_b.lists, points_b)
    return KNNGraph.of_lists(merge_lists(*pairs, call, recall=recall, seed=seed, update=update))
