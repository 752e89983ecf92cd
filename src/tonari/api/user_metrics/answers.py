"""The counterparts of the public functions for distances that the caller defines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.user_metrics.call import GivenCall
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.trail import recording
from tonari.filters.arguments import shared_mask
from tonari.filters.searches.asking import are_all
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.user_metrics.cpu import within as by_radius
from tonari.user_metrics.values import MatrixValues, Values, strip


def search_given(
    call: GivenCall,
    k: int,
    *,
    ties: str = "first",
) -> Neighbors | RadiusNeighbors:
    """Find the k nearest points of every query; see :func:`tonari.search`."""
    k = inputs.check_k(k, call.values.n, without_self=False)
    allowed = call.allowed()
    found, _ = call.nearest(k, allowed)
    if are_all(ties):
        return RadiusNeighbors(*call.handed_back(call.with_ties(found, allowed)))
    return Neighbors(*call.handed_back(found))


def graph_given(
    call: GivenCall,
    k: int,
    *,
    symmetric: bool = False,
    include_self: bool = False,
    ties: str = "first",
) -> KNNGraph | RadiusNeighbors:
    """Build the graph of the k nearest other points; see :func:`tonari.knn_graph`."""
    values, include_self = call.values, inputs.check_flag(include_self, "include_self")
    symmetric, tied = _symmetric(symmetric, values), are_all(ties)
    if tied and include_self:
        raise ValueError("include_self: not with ties='all', whose lists have no column for the point itself")
    k = inputs.check_k(k, values.n - (not include_self), without_self=not include_self)
    shared_mask(call.filters.where, values.n)
    allowed = call.allowed()
    plan, others = call.plan(k), k - include_self
    with recording("knn_graph", values.n) as record:
        if others:
            found, own = call.nearest(others, allowed, own=True, symmetric=symmetric, plan=plan)
        else:
            places = (slice(i, i + 1) for i in range(values.n))
            own = np.concatenate([strip(values, i, i, 1, own=True)[0] for i in places])
            found = Neighbors.empty(values.n, 0, values.n, values.dtype)
        record.tried("all distances", values.n, values.n)
    if tied:
        return RadiusNeighbors(*call.handed_back(call.with_ties(found, allowed, own=True, symmetric=symmetric)))
    if include_self:
        _refuse_own_nan(own, values.name)
        every = np.arange(values.n, dtype=found.indices.dtype)
        found = Neighbors(np.column_stack([own, found.distances]), np.column_stack([every, found.indices]))
    lists = Neighbors(*call.handed_back(found))
    return KNNGraph.of_lists(Lists(lists, values.name, "exact", include_self, record=record))


def kth_given(call: GivenCall, k: int, *, symmetric: bool = False) -> Any:
    """Find the distance of every point to its k-th nearest other point; see :func:`tonari.kth_distance`."""
    values = call.values
    k, symmetric = inputs.check_k(k, values.n - 1, without_self=True), _symmetric(symmetric, values)
    found, _ = call.nearest(k, None, own=True, symmetric=symmetric)
    return call.handed_back((found.distances[:, -1].copy(),))[0]


def radius_given(
    call: GivenCall,
    *,
    max_neighbors: Any = None,
) -> RadiusNeighbors:
    """Find all points within a radius of every query; see :func:`tonari.radius_search`."""
    most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
    limits = call.limits()
    allowed = call.allowed()
    return call.listed(call.within(limits, allowed), most)


def count_given(
    call: GivenCall,
) -> Any:
    """Count the points within a radius of every query; see :func:`tonari.radius_count`."""
    limits = call.limits()
    allowed = call.allowed()
    counts = by_radius.count(call.values, limits, call.plan(0), allowed=allowed, progress=call.progress)
    return call.handed_back((counts,))[0]


def radius_graph_given(
    call: GivenCall,
    *,
    symmetric: bool = False,
    max_neighbors: Any = None,
) -> RadiusNeighbors:
    """Find all other points within a radius of every point; see :func:`tonari.radius_graph`."""
    most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
    values, limits = call.values, call.limits()
    symmetric = _symmetric(symmetric, values)
    shared_mask(call.filters.where, values.n)
    allowed = call.allowed()
    return call.listed(call.within(limits, allowed, own=True, symmetric=symmetric), most)


def pairs_given(
    call: GivenCall,
) -> Pairs:
    """Find all pairs of points within a radius of each other; see :func:`tonari.pairs`."""
    values = call.values
    limits = call.limits()
    mask, rule = shared_mask(call.filters.where, values.n), call.allowed()

    def allowed(rows: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        passed = np.ones(rows.shape, bool) if rule is None else rule(rows, others)
        return passed if mask is None else passed & mask.host[rows]

    found = call.within(limits, allowed, own=True, later=True)
    return Pairs(*call.handed_back(pairs_of(found, 0)))


def _symmetric(symmetric: Any, values: Values) -> bool:
    """Check `symmetric`, and ignore it for a matrix: reading a distance twice costs nothing."""
    return inputs.check_flag(symmetric, "symmetric") and not isinstance(values, MatrixValues)


def _refuse_own_nan(own: npt.NDArray[Any], name: str) -> None:
    if np.isnan(own).any():
        row = int(np.isnan(own).argmax())
        raise ValueError(
            f"metric={name!r}: the distance of point {row} to itself is NaN, which include_self=True puts into the "
            "graph; leave include_self out"
        )
