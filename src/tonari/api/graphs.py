"""The public functions that make graphs: `tonari.knn_graph` and `tonari.merge`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tonari import inputs
from tonari.api.sparse.answers import are_sparse, refuse_for_sparse, sparse_graph
from tonari.api.user_metrics.answers import graph_given
from tonari.api.user_metrics.call import on_given_values
from tonari.api.wrappers.changed import on_changed_rows
from tonari.api.wrappers.copies import counting_copies
from tonari.api.wrappers.differentiable import carries
from tonari.api.wrappers.filtered import graph_ties
from tonari.core.plan import Plan
from tonari.core.process.floats import in_default_floats
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import Given
from tonari.filters.searches.asking import are_all
from tonari.graph.building.build import GraphOptions, build_allowed, build_lists, refuse_options
from tonari.graph.building.changed_rows import on_compared_rows
from tonari.graph.building.merging import merge_lists
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.methods import repeated
from tonari.methods.answer import on_side_of
from tonari.methods.call import Call
from tonari.methods.options import Options, PlaceOptions, SearchOptions, shares
from tonari.metrics import TritonFunction

if TYPE_CHECKING:
    from typing_extensions import Unpack


@overload
def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str | TritonFunction | Callable[..., Any] = "euclidean",
    recall: float | None = None,
    seed: int | None = None,
    start: str | KNNGraph | None = None,
    update: str | None = None,
    include_self: bool = False,
    symmetric: bool = False,
    where: Any = None,
    batch: Any = None,
    exclude_within: int | None = None,
    ties: Literal["first"] = "first",
    differentiable: bool = False,
    plan: Plan | None = None,
    **shared: Unpack[SearchOptions],
) -> KNNGraph: ...


@overload
def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str | TritonFunction | Callable[..., Any] = "euclidean",
    recall: float | None = None,
    seed: int | None = None,
    start: str | KNNGraph | None = None,
    update: str | None = None,
    include_self: bool = False,
    symmetric: bool = False,
    where: Any = None,
    batch: Any = None,
    exclude_within: int | None = None,
    ties: Literal["all"],
    differentiable: bool = False,
    plan: Plan | None = None,
    **shared: Unpack[SearchOptions],
) -> RadiusNeighbors: ...


@repeated.repeating
@in_default_floats
@on_given_values(graph_given)
@counting_copies
@on_changed_rows
@shares(SearchOptions)
def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str | TritonFunction | Callable[..., Any] = "euclidean",
    recall: float | None = None,
    seed: int | None = None,
    start: str | KNNGraph | None = None,
    update: str | None = None,
    include_self: bool = False,
    symmetric: bool = False,
    where: Any = None,
    batch: Any = None,
    exclude_within: int | None = None,
    ties: str = "first",
    differentiable: bool = False,
    plan: Plan | None = None,
    **shared: Unpack[SearchOptions],
) -> KNNGraph | RadiusNeighbors:
    """Build the k-nearest-neighbour graph of a set of points: exactly, or by NN-Descent to a given recall.

    Parameters
    ----------
    points : array of shape (n, d)
        As for :func:`search`. The graph of sparse rows is exact.
    metric : str, function or Triton function
        As for :func:`search`; for "precomputed", `points` is the (n, n) array of all distances, and the diagonal is not
        read. For "nn-descent" on CUDA it may also be a function f(q, x) decorated with ``triton.jit``, which takes two
        float64 tensors of coordinates. The distance of two points is the sum of f over their coordinates; f must be
        >= 0, and 0 for equal coordinates. The graph's metric is then named "triton:" followed by the function's name.
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour: its row number is excluded, so its
        duplicates are found.
    method : str
        As for :func:`search`, or "nn-descent": an approximate method for many points in more than a few dimensions, on
        the CPU or on one CUDA device. It finds nearly all true neighbours, and their distances equal those of exact
        search. The same seed gives the same graph for any number of threads, except with ``update="gnnd"``. With
        `recall`, "auto" chooses NN-Descent if it is expected to be clearly faster than the exact graph, and builds
        the exact graph if NN-Descent then misses the recall.
    recall : float, optional
        Share of the true neighbours to find, below 1. NN-Descent compares a random sample of rows with the exact answer
        and stops once the graph has this recall with 97.5 % confidence; a warning says if it cannot reach it. Default:
        0.99 for "nn-descent"; "auto" builds the exact graph.
    seed : int, optional
        Seed of the random choices of NN-Descent. Default: 0.
    start : "clusters", "random" or KNNGraph, optional
        The initial neighbours of NN-Descent: members of near clusters (default), random points (default of "gnnd"), or
        the neighbours in another graph of the same points, which may have another metric and k.
    update : "pull" or "gnnd", optional
        For ``method="nn-descent"`` on CUDA: how each round of NN-Descent updates the neighbour lists. "pull" (default):
        each point reads the lists of its neighbours and writes only its own. "gnnd": the rounds of wang2021
        (section 4), in which points insert into each other's lists under locks. "gnnd" starts at random by default and
        supports euclidean, sqeuclidean, cosine, correlation and inner_product. Its distances are exact too, but another
        run with the same seed may find other neighbours.
    include_self : bool
        Put the point itself into column 0, as one of the k neighbours, at distance 0 (for "inner_product" at <x, x>). k
        may then be 1 to n.
    symmetric : bool
        For a metric that is a function: compute the distance of two points once, and use it in both lists. f(a, b) must
        equal f(b, a), which is not checked.
    where : bool array of shape (n,), optional
        Mask of the points that may be neighbours. Points outside the mask still have a row of neighbours. `where`,
        `batch` and `exclude_within` are supported for exact graphs only. A graph that was built with any of them names
        them in `filters`, and cannot be merged or changed.
    batch : int array of shape (n,), optional
        The group of each point, such as the number of its cloud, as whole numbers in any order. A point's neighbours
        are in its own group. For clouds of known lengths: ``numpy.repeat(numpy.arange(len(lengths)), lengths)``. If a
        group has fewer than k other points, its rows end with -1 at distance inf (-inf for "inner_product").
    exclude_within : int, optional
        Points whose row numbers differ by at most this number are not neighbours: the Theiler window of a time series,
        because a point resembles the points just before and after it. A wider window takes no more memory. If fewer
        than k points are outside the window of a point, its row ends with -1, as for `batch`.
    ties : str
        "first" (default): k neighbours; among points at the k-th distance, the smallest row numbers are returned.
        "all": also all other points at the k-th distance; the result is then :class:`RadiusNeighbors`. This needs an
        exact method, and excludes `include_self`.
    differentiable : bool
        Let gradients flow from each distance to both of its points, as for :func:`search`.
    plan : Plan, optional
        As for :func:`search`.

    Returns
    -------
    KNNGraph, or with ``ties="all"`` RadiusNeighbors(indptr, indices, distances)
        A :class:`KNNGraph` has `indices` and `distances` of shape (n, k), with the dtypes and the order of
        :func:`search`. Arrays belong to the library of the points and are on their device. The `report` of an
        approximate graph has the measured recall.

    Raises
    ------
    TypeError, ValueError
        As for :func:`search`, with k at most n - 1; also for options that the method does not support.

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
    options = Options.of(metric, shared)
    limits, tied = Given(where=where, batch=batch, exclude_within=exclude_within), are_all(ties)
    if are_sparse(points):
        refuse_for_sparse(
            recall=recall, seed=seed, start=start, update=update, plan=plan, differentiable=differentiable
        )
        return sparse_graph(points, k, limits, options, include_self=include_self, ties=tied)
    plain = (
        not tied
        and recall is seed is options.threads is where is batch is exclude_within is options.memory is None
        and start is update is None
        and plan is None
        and include_self is False
        and differentiable is False
    )
    call = Call.of({"points": points}, options, graph=True)
    carry = carries(differentiable, points, points, call.metric.name)
    begin = start.lists if isinstance(start, KNNGraph) else start
    building = GraphOptions(recall=recall, seed=seed, start=begin, update=update, plan=plan, include_self=include_self)
    if tied:
        refuse_options(call.method, building, "ties='all' is")
        if inputs.check_flag(include_self, "include_self"):
            raise ValueError("include_self: not with ties='all', whose lists have no column for the point itself")
        return carry(on_side_of(points, graph_ties(call, points, k, limits), "points"))
    if limits:
        lists = build_allowed(points, k, call, limits, building)
    else:
        lists = build_lists(points, k, call, building, KNNGraph.of_lists if plain else None)
    found = carry(lists.found)
    return KNNGraph.of_lists(lists if found is lists.found else replace(lists, found=found))


@in_default_floats
@inputs.without_gradients("use tonari.knn_graph of all points with differentiable=True")
@shares(PlaceOptions)
def merge(
    graph_a: KNNGraph,
    graph_b: KNNGraph,
    points_a: Any,
    points_b: Any,
    *,
    recall: float = 0.99,
    seed: int = 0,
    update: str | None = None,
    **shared: Unpack[PlaceOptions],
) -> KNNGraph:
    """Merge the graphs of two sets of points into the graph of all points.

    Parameters
    ----------
    graph_a, graph_b : KNNGraph
        Two graphs with the same metric, k and include_self. Each may be exact or approximate.
    points_a, points_b : arrays of shape (n_a, d) and (n_b, d)
        The points of each graph, of the same dtype, both in host memory or both on one device. The distances of 64 rows
        of each graph are recomputed, so a graph of other points, or of the same points in another order, is refused.
    recall : float
        Share of the true neighbours to find, below 1, for the points of each graph, as for :func:`tonari.knn_graph`.
        Only neighbours across the two graphs are searched for: if an approximate graph lacks a neighbour among its own
        points, the merge does not look for it.
    seed : int
        Seed of the random choices.
    update : "pull" or "gnnd", optional
        On CUDA: how the rounds of NN-Descent update the neighbour lists, as for :func:`tonari.knn_graph`; "gnnd" is the
        merge of wang2021 (GGM, section 5.1). If one set is small, all pairs are compared instead, without rounds.
    device, threads, memory, progress
        As for :func:`tonari.knn_graph`. The function copies all points into one array, in addition to `memory`, unless
        both sets are adjacent slices of one array. :func:`tonari.build_graph` builds graphs of more points than fit in
        memory.

    Returns
    -------
    KNNGraph of n_a + n_b points
        The row numbers of b are increased by n_a. The arrays belong to the library of points_a and are on its device.
        If both graphs are exact and one is small, the result is exact; otherwise `report` has the measured recall of
        the set with the lower recall.

    Raises
    ------
    TypeError, ValueError
        As for :func:`tonari.knn_graph`; also if graphs or points do not match each other; if a graph was built from
        other points (the message names the row and the neighbour), or with filters; or if an exact graph has lists
        shorter than k, as after :meth:`KNNGraph.subset`.

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
    for name in ("weights", "transform"):
        if not np.array_equal(getattr(graph_a, name), getattr(graph_b, name)):
            raise ValueError(f"graph_a and graph_b have different {name}: they must agree")

    def merged(graphs: list[Lists], rows: list[Any], call: Call) -> Lists:
        a, b = zip(graphs, rows, strict=True)
        return merge_lists(a, b, call, recall=recall, seed=seed, update=update)

    lists = on_compared_rows(
        {"points_a": graph_a.lists, "points_b": graph_b.lists},
        {"points_a": points_a, "points_b": points_b},
        merged,
        Options(**shared),
    )
    return KNNGraph.of_lists(lists)
