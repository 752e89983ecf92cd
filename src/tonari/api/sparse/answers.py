"""The counterparts of the public functions for sparse rows, one function for each."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.sparse.among import Among, native_rules
from tonari.core.errors import Unsupported
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype, value_dtype
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.trail import recording
from tonari.filters.arguments import Given, shared_mask, window_of
from tonari.filters.rules import Rules
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.methods.call import Radius
from tonari.methods.options import Options
from tonari.metrics import Metric, get_metric
from tonari.metrics.radius import limits_of
from tonari.metrics.transforms.change import Change
from tonari.metrics.transforms.row_changes import Weighting
from tonari.sparse.cpu.search import PreparedSparse
from tonari.sparse.plan import SparsePlan
from tonari.sparse.plan import refusal as metric_refusal
from tonari.sparse.rows import Ranking, SparseRows, as_sparse_rows


def are_sparse(rows: Any, others: Any = None) -> bool:
    """Whether one of the arrays is sparse: a matrix or array of SciPy, or sparse rows that have been checked."""
    return any(hasattr(each, "tocsr") or isinstance(each, SparseRows) for each in (rows, others))


def refuse_for_sparse(**arguments: Any) -> None:
    """Refuse arguments that are not supported for sparse rows, unless they are None or False."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise Unsupported(
                f"{name}: not supported for sparse rows; leave it out, or use .toarray() if the rows fit in memory"
            )


def changed_rows(change: Change, x: Any, name: str) -> SparseRows:
    """Multiply sparse rows by weights; raise Unsupported for other transformations."""
    if not isinstance(change.prepare, Weighting):
        what = "transform" if change.transform is not None else f"metric={change.metric!r}"
        raise Unsupported(
            f"{what}: changes rows, which is not supported for sparse rows; change the rows yourself, or use "
            ".toarray() if they fit in memory"
        )
    rows, weights = as_sparse_rows(x, name), change.prepare.weights
    if rows.d != len(weights):
        raise ValueError(f"weights: has {len(weights)} numbers, but {name} have {rows.d} columns; give one for each")
    return rows.scaled(weights, change.prepare.factors(weights[weights > 0]))


class SparseCall(NamedTuple):
    """The checked arguments of a public function on sparse rows, without k, radii and filters.

    Attributes
    ----------
    queries : SparseRows
        In a self-join, the points themselves (the same object).
    among : Among
        The points, with the options of the call.
    """

    queries: SparseRows
    among: Among

    @classmethod
    def of(
        cls,
        queries: Any,
        points: Any,
        options: Options,
    ) -> SparseCall:
        """Check the rows and the options of a public function; without `queries`, the call is a self-join."""
        record = checked_metric(options.metric)
        check_place(options.method, options.device)
        threads, memory = inputs.check_threads(options.threads), inputs.parse_memory(options.memory)
        progress = inputs.check_progress(options.progress)
        base = as_sparse_rows(points, "points", sets=record.bits)
        rows = base if queries is points else as_sparse_rows(queries, "queries", sets=record.bits)
        if rows.d != base.d:
            raise ValueError(f"queries have {rows.d} columns, but points have {base.d}")
        return cls(rows, Among(base, record, threads, memory, progress))

    def limits(self, within: Radius) -> npt.NDArray[Any]:
        """Return for each query the largest distance within its radius."""
        value = value_dtype(self.queries.dtype, self.among.points.dtype)
        return limits_of(self.among.metric, len(self.queries), value, **within._asdict())

    def rules(self, given: Given, *, own: bool = False) -> Rules | None:
        """Check the filters; in a self-join, `where` must be one mask for all rows."""
        n = len(self.among.points)
        rules = given.rules(len(self.queries), n, own=own)
        if own and rules is not None and rules.mask is not None:
            raise ValueError(f"where: expected shape ({n},), one mask for all rows, got {rules.mask.shape}")
        return rules


def checked_metric(metric: Any) -> Metric:
    """Return the record of a metric; raise Unsupported if it does not support sparse rows."""
    record = get_metric(metric)
    why_not = metric_refusal(record.name)
    if why_not is not None:
        raise Unsupported(why_not)
    return record


def check_place(method: Any, device: Any) -> None:
    """Raise Unsupported for a method or a device that does not support sparse rows."""
    if method not in ("auto", "exact"):
        raise Unsupported(f"method={method!r}: sparse rows have one method, an exact one; use method='auto'")
    if inputs.parse_device(device) not in ("auto", "cpu"):
        raise Unsupported(
            f"device={device!r}: sparse rows are searched on the CPU; leave device out, or use .toarray() if the "
            "rows fit in memory"
        )


def sparse_search(
    queries: Any, points: Any, k: Any, given: Given, options: Options, *, ties: bool
) -> Neighbors | RadiusNeighbors:
    """Find the k nearest sparse points of every sparse query; see :func:`tonari.search`."""
    call = SparseCall.of(queries, points, options)
    rules = call.rules(given)
    with recording("search", len(call.queries)):
        find = call.among.with_ties if ties else call.among.nearest
        return find(call.queries, k, rules)


def sparse_graph(
    points: Any, k: Any, given: Given, options: Options, *, include_self: Any, ties: bool
) -> KNNGraph | RadiusNeighbors:
    """Build the exact graph of sparse points; see :func:`tonari.knn_graph`."""
    include_self = inputs.check_flag(include_self, "include_self")
    call = SparseCall.of(points, points, options)
    rows, among = call
    n = len(rows)
    if ties and include_self:
        raise ValueError("include_self: not with ties='all', whose lists have no column for the point itself")
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    rules = call.rules(given, own=True)
    with recording("knn_graph", n) as record:
        if ties:
            return among.with_ties(rows, k, rules, self_join=True)
        if k > include_self:
            found = among.nearest(rows, k - include_self, rules, self_join=True)
        else:
            found = Neighbors.empty(n, 0, n, rows.dtype)
    if include_self:
        indices = np.arange(n, dtype=found.indices.dtype)[:, None]
        own = _own_values(among, found.distances.dtype)
        found = Neighbors(np.hstack([own, found.distances]), np.hstack([indices, found.indices]))
    return KNNGraph.of_lists(Lists(found, among.metric.name, "exact", include_self, record=record))


def _own_values(among: Among, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the distance (or similarity) of each point to itself, as an array of shape (n, 1)."""
    value = among.metric.self_value
    if value is not None:
        return np.full((len(among.points), 1), value, dtype)
    squares = np.empty(len(among.points))
    PreparedSparse(among.points, Ranking(among.points), among.metric.name).native.squares(squares)
    return squares.astype(dtype)[:, None]


def sparse_radius(
    queries: Any, points: Any, within: Radius, given: Given, options: Options, *, max_neighbors: Any
) -> RadiusNeighbors:
    """Find all sparse points within a radius of every sparse query; see :func:`tonari.radius_search`."""
    call = SparseCall.of(queries, points, options)
    limits, rules, most = call.limits(within), call.rules(given), _most(max_neighbors)
    with recording("radius_search", len(call.queries)):
        return call.among.within(call.queries, limits, rules, most=most)


def sparse_count(queries: Any, points: Any, within: Radius, given: Given, options: Options) -> npt.NDArray[np.int64]:
    """Count the sparse points within a radius of every sparse query; see :func:`tonari.radius_count`."""
    call = SparseCall.of(queries, points, options)
    limits, rules = call.limits(within), call.rules(given)
    with recording("radius_count", len(call.queries)):
        return call.among.count(call.queries, limits, rules)


def sparse_radius_graph(
    points: Any, within: Radius, given: Given, options: Options, *, max_neighbors: Any
) -> RadiusNeighbors:
    """Find all other points within a radius of every sparse point; see :func:`tonari.radius_graph`."""
    call = SparseCall.of(points, points, options)
    limits, rules, most = call.limits(within), call.rules(given, own=True), _most(max_neighbors)
    with recording("radius_graph", len(call.queries)):
        return call.among.within(call.queries, limits, rules, most=most, own=True)


def _most(max_neighbors: Any) -> int | None:
    return None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")


class SparsePairs:
    """Finds the pairs of sparse points within a radius, one block of rows after another; see :func:`tonari.pairs`.

    Parameters
    ----------
    points : sparse rows
    within : Radius
    options : Options
    where, exclude_within
        As for :func:`tonari.pairs`.

    Attributes
    ----------
    n : int
        The number of points.
    count : int
        The number of points that `where` allows.
    dtype : dtype
        The dtype of distances.
    """

    def __init__(self, points: Any, within: Radius, options: Options, *, where: Any, exclude_within: Any) -> None:
        call = SparseCall.of(points, points, options)
        self.n = self.count = len(call.queries)
        limits, ids = call.limits(within), None
        window = None if exclude_within is None else window_of(exclude_within, self.n, self.n)
        allowed = shared_mask(where, self.n)
        if allowed is not None:
            ids = allowed.host_places
            queries = call.queries.take(ids)
            call = SparseCall(queries, dataclasses.replace(call.among, points=queries))
            limits, self.count = limits[ids], len(ids)
        rules = None if window is None else Rules(m=self.n, n=self.n, window=window, rows=ids, ids=ids)
        self._call, self._limits, self._ids, self._rules, self.dtype = call, limits, ids, rules, limits.dtype
        self._ready: tuple[PreparedSparse, SparsePlan] | None = None
        if self.count:
            memory = native_rules(rules)[1]
            problem = call.among.problem(call.queries, 1)
            self._ready = call.among.ready(call.queries, problem, within=True, held=memory)

    def of(self, rows: slice, progress: ProgressLike) -> Pairs:
        """Find all pairs of a row in the slice `rows` and a later row, of rows that `where` allows."""
        among = dataclasses.replace(self._call.among, progress=progress)
        lists = among.within(
            self._call.queries, self._limits, self._rules, own=True, later=True, rows=rows, ready=self._ready
        )
        found = pairs_of(lists, rows.start)
        if self._ids is None:
            return found
        ids = self._ids.astype(index_dtype(self.n))
        return found._replace(left=ids[found.left], right=ids[found.right])


def sparse_kth(points: Any, k: Any, options: Options) -> npt.NDArray[Any]:
    """Find the distance of every sparse point to its k-th nearest other point; see :func:`tonari.kth_distance`."""
    call = SparseCall.of(points, points, options)
    with recording("kth_distance", len(call.queries)):
        return call.among.kth(k)
