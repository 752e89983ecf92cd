"""Public functions on sparse rows: compressed rows of SciPy, searched on the CPU (``tonari.sparse``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, no_neighbors, value_dtype
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within
from tonari.core.trail import recording
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.methods.rows.value_range import DIGITS, may_underflow, refusal
from tonari.metrics import Metric, get_metric
from tonari.metrics.radius import limits_of
from tonari.sparse.cpu.search import PreparedSparse, find_sparse, kth_sparse, search_sparse
from tonari.sparse.plan import SparsePlan, plan_sparse
from tonari.sparse.plan import refusal as metric_refusal
from tonari.sparse.rows import Ranking, SparseRows, as_sparse_rows


class Radius(NamedTuple):
    """The arguments of a radius search with these names, not checked."""

    radius: Any
    min_similarity: Any
    closed: Any


def are_sparse(rows: Any, others: Any = None) -> bool:
    """Whether one of the arrays is a sparse matrix or array of SciPy."""
    return hasattr(rows, "tocsr") or hasattr(others, "tocsr")


class SparseCall(NamedTuple):
    """The checked arguments of a public function on sparse rows, apart from k and radii.

    Attributes
    ----------
    queries, points : SparseRows
        In a self-join, both are the same object.
    metric : Metric
    threads, memory : int, optional
    progress : None, bool or callable(done, total)
    """

    queries: SparseRows
    points: SparseRows
    metric: Metric
    threads: int | None
    memory: int | None
    progress: ProgressLike

    @classmethod
    def of(
        cls,
        queries: Any,
        points: Any,
        *,
        metric: Any,
        method: Any,
        device: Any,
        threads: Any,
        memory: Any,
        progress: Any,
        **unsupported: Any,
    ) -> SparseCall:
        """Check the arguments; arguments in `unsupported` have to be None or False."""
        for name, x in (("queries", queries), ("points", points)):
            if not are_sparse(x):
                raise TypeError(
                    f"{name}: is a dense {type(x).__name__}, but the other rows are sparse; make both sparse with "
                    "scipy.sparse.csr_array(...), or both dense with .toarray() if they fit in memory"
                )
        for name, value in unsupported.items():
            if value is not None and value is not False:
                raise Unsupported(
                    f"{name}: not supported for sparse rows; leave it out, or use .toarray() if the rows fit in memory"
                )
        record = get_metric(metric)
        why_not = metric_refusal(record.name)
        if why_not is not None:
            raise Unsupported(why_not)
        if method not in ("auto", "exact"):
            raise Unsupported(f"method={method!r}: sparse rows have one method, an exact one; use method='auto'")
        if inputs.parse_device(device) not in ("auto", "cpu"):
            raise Unsupported(
                f"device={device!r}: sparse rows are searched on the CPU; leave device out, or use .toarray() if the "
                "rows fit in memory"
            )
        threads, memory = inputs.check_threads(threads), inputs.parse_memory(memory)
        progress = inputs.check_progress(progress)
        base = as_sparse_rows(points, "points")
        rows = base if queries is points else as_sparse_rows(queries, "queries")
        if rows.d != base.d:
            raise ValueError(f"queries have {rows.d} columns, but points have {base.d}")
        value = value_dtype(rows.dtype, base.dtype)
        base = base.astype(value)
        return cls(base if queries is points else rows.astype(value), base, record, threads, memory, progress)

    def problem(self, k: Any, *, self_join: bool = False) -> Problem:
        """Return the problem of a search; without queries, the problem of a single query."""
        n, d = self.points.shape
        return Problem(
            n=n,
            m=max(1, len(self.queries)),
            d=d,
            k=inputs.check_k(k, n - self_join, without_self=self_join),
            dtype=str(self.points.dtype),
            query_dtype=str(self.queries.dtype),
            metric=self.metric.name,
            self_join=self_join,
            threads=self.threads,
            memory=self.memory,
        )

    def prepared(self, problem: Problem) -> tuple[PreparedSparse, SparsePlan]:
        """Plan a search, and prepare the points."""
        ranking = Ranking(self.points)
        plan = plan_sparse(problem, self.queries, self.points, ranking)
        return PreparedSparse(self.points, ranking, plan.metric), plan

    def nearest(self, k: Any, *, self_join: bool = False) -> Neighbors:
        """Find the k nearest points of every query."""
        problem = self.problem(k, self_join=self_join)
        if not len(self.queries):
            return no_neighbors(problem.k, problem.n, problem.value_dtype)
        found = search_sparse(self.queries, *self.prepared(problem), own=self_join, progress=self.progress)
        _check_range(self, found.distances.ravel(), found.indices.ravel(), np.full(len(self.queries), problem.k))
        return found

    def within(self, limits: npt.NDArray[Any], *, own: bool = False, later: bool = False) -> RadiusNeighbors:
        """Find all points within the limits; `own` leaves out the query itself, `later` also all points before it."""
        if not len(self.queries) or not len(self.points):
            return none_within(len(self.points), self.points.dtype, len(self.queries))
        prepared, plan = self.prepared(self.problem(1))
        found = find_sparse(self.queries, prepared, plan, limits, own=own, later=later, progress=self.progress)
        _check_range(self, found.distances, found.indices, np.diff(found.indptr))
        return found

    def limits(self, within: Radius) -> npt.NDArray[Any]:
        """Return the largest distance within the radius of each query."""
        return limits_of(self.metric, len(self.queries), self.points.dtype, **within._asdict())


def sparse_search(queries: Any, points: Any, k: Any, **options: Any) -> Neighbors:
    """Find the k nearest sparse points of every sparse query; see :func:`tonari.search`."""
    call = SparseCall.of(queries, points, **options)
    with recording("search", len(call.queries)):
        return call.nearest(k)


def sparse_graph(points: Any, k: Any, *, include_self: Any, **options: Any) -> KNNGraph:
    """Build the exact graph of sparse points; see :func:`tonari.knn_graph`."""
    include_self = inputs.check_flag(include_self, "include_self")
    call = SparseCall.of(points, points, **options)
    if include_self and call.metric.descending:
        raise Unsupported(
            f"include_self: not supported for sparse rows with metric={call.metric.name!r}; leave it out, or use "
            ".toarray() if the rows fit in memory"
        )
    n = len(call.points)
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    with recording("knn_graph", n) as record:
        if k > include_self:
            found = call.nearest(k - include_self, self_join=True)
        else:
            found = Neighbors.empty(n, 0, n, call.points.dtype)
    if include_self:
        own = np.arange(n, dtype=found.indices.dtype)[:, None]
        zeros = np.zeros((n, 1), found.distances.dtype)
        found = Neighbors(np.hstack([zeros, found.distances]), np.hstack([own, found.indices]))
    return KNNGraph.of_lists(Lists(found, call.metric.name, "exact", include_self, record=record))


def sparse_radius(queries: Any, points: Any, within: Radius, **options: Any) -> RadiusNeighbors:
    """Find all sparse points within a radius of every sparse query; see :func:`tonari.radius_search`."""
    call = SparseCall.of(queries, points, **options)
    limits = call.limits(within)
    with recording("radius_search", len(call.queries)):
        return call.within(limits)


def sparse_radius_graph(points: Any, within: Radius, **options: Any) -> RadiusNeighbors:
    """Find all other points within a radius of every sparse point; see :func:`tonari.radius_graph`."""
    call = SparseCall.of(points, points, **options)
    limits = call.limits(within)
    with recording("radius_graph", len(call.points)):
        return call.within(limits, own=True)


def sparse_pairs(points: Any, within: Radius, **options: Any) -> Pairs:
    """Find all pairs of sparse points within a radius of each other; see :func:`tonari.pairs`."""
    call = SparseCall.of(points, points, **options)
    limits = call.limits(within)
    with recording("pairs", len(call.points)):
        return pairs_of(call.within(limits, own=True, later=True), 0)


def sparse_kth(points: Any, k: Any, **options: Any) -> npt.NDArray[Any]:
    """Find the distance of every sparse point to its k-th nearest other point; see :func:`tonari.kth_distance`."""
    call = SparseCall.of(points, points, **options)
    problem = call.problem(k, self_join=True)
    progress = call.progress
    if callable(progress):
        counted, n = progress, len(call.points)

        def progress(done: int, total: int) -> None:
            counted(done // n, total // n)

    with recording("kth_distance", len(call.points)):
        return kth_sparse(call.queries, *call.prepared(problem), progress=progress)


def _check_range(
    call: SparseCall, values: npt.NDArray[Any], indices: npt.NDArray[Any], counts: npt.NDArray[Any]
) -> None:
    """Refuse values that have overflowed or underflowed; see ``methods/rows/value_range.py``."""
    record = call.metric
    lost = np.isinf(values)
    if lost.any():
        at = int(lost.argmax())
        raise refusal(int(np.repeat(np.arange(len(counts)), counts)[at]), values[at], record)
    if not may_underflow(record, call.queries, call.points):
        return
    tiny = float(np.finfo(values.dtype).tiny)
    under = np.flatnonzero(np.abs(values) < tiny)
    if not len(under):
        return
    rows = np.repeat(np.arange(len(counts)), counts)[under]
    q, x = _largest(call.queries)[rows], _largest(call.points)[indices[under]]
    with np.errstate(under="ignore", over="ignore"):
        small = (q * x if record.products else np.square(np.maximum(q, x))) < tiny * DIGITS
    small &= ((q > 0) & (x > 0)) if record.products else ((q > 0) | (x > 0))
    for at, row in zip(under[small], rows[small], strict=True):
        if _differ(call.queries, int(row), call.points, int(indices[at]), products=record.products):
            raise refusal(int(row), values[at], record)


def _largest(rows: SparseRows) -> npt.NDArray[np.float64]:
    """Return the largest magnitude of each row."""
    out = np.zeros(len(rows))
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        out[filled] = np.maximum.reduceat(np.abs(rows.values.astype(np.float64)), rows.indptr[filled])
    return out


def _differ(queries: SparseRows, row: int, points: SparseRows, point: int, *, products: bool) -> bool:
    """Whether two rows have a value other than 0: a common column, or for distances a difference."""
    (a, p), (b, q) = (
        (of.columns[of.indptr[at] : of.indptr[at + 1]], of.values[of.indptr[at] : of.indptr[at + 1]])
        for of, at in ((queries, row), (points, point))
    )
    if products:
        return bool(np.intersect1d(a, b).size)
    return not (np.array_equal(a, b) and np.array_equal(p, q))
