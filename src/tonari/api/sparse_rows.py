"""Public functions on sparse rows: compressed rows of SciPy, searched on the CPU (``tonari.sparse``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api import tuning
from tonari.core import _native
from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype, no_neighbors, value_dtype
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within
from tonari.core.trail import part, recording
from tonari.filters.arguments import Given, shared_mask, window_of
from tonari.filters.rules import Rules
from tonari.filters.ties import first_and_tied, joined_ties
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.methods.rows.value_range import DIGITS, may_underflow, refusal
from tonari.metrics import Metric, get_metric
from tonari.metrics.changed import Change
from tonari.metrics.radius import limits_of
from tonari.metrics.row_changes import Weighting
from tonari.sparse.cpu.search import PreparedSparse, Request, count_sparse, find_sparse, kth_sparse, search_sparse
from tonari.sparse.plan import SparsePlan, plan_sparse
from tonari.sparse.plan import refusal as metric_refusal
from tonari.sparse.rows import Ranking, SparseRows, as_sparse_rows


class Radius(NamedTuple):
    """The arguments of a radius search with these names, not checked."""

    radius: Any
    min_similarity: Any
    closed: Any


def are_sparse(rows: Any, others: Any = None) -> bool:
    """Whether one of the arrays is a sparse matrix or array of SciPy, or its checked rows."""
    return any(hasattr(each, "tocsr") or isinstance(each, SparseRows) for each in (rows, others))


def changed_rows(change: Change, x: Any, name: str) -> SparseRows:
    """Return sparse rows times weights; refuse other changes of rows."""
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


@dataclass(frozen=True, eq=False)
class Among:
    """Sparse points, and what all searches among them share.

    Attributes
    ----------
    points : SparseRows
    metric : Metric
    threads, memory : int, optional
    progress : None, bool or callable(done, total)
    prepared : PreparedSparse, optional
        The prepared points of an Index; None if each search prepares them.
    left : bool array of shape (n,), optional
        The points of an Index that are not removed.
    taken : int
        The bytes of `memory` that are already in use.
    """

    points: SparseRows
    metric: Metric
    threads: int | None = None
    memory: int | None = None
    progress: ProgressLike = None
    prepared: PreparedSparse | None = None
    left: npt.NDArray[np.bool_] | None = None
    taken: int = 0

    def problem(self, queries: SparseRows, k: Any, *, self_join: bool = False) -> Problem:
        """Return the problem of a search; without queries, the problem of a single query."""
        n, d = self.points.shape
        return Problem(
            n=n,
            m=max(1, len(queries)),
            d=d,
            k=inputs.check_k(k, n - self_join, without_self=self_join),
            dtype=str(self.points.dtype),
            query_dtype=str(queries.dtype),
            metric=self.metric.name,
            self_join=self_join,
            threads=self.threads,
            memory=self.memory,
        )

    def ready(
        self, queries: SparseRows, problem: Problem, *, within: bool = False, held: int = 0
    ) -> tuple[PreparedSparse, SparsePlan]:
        """Plan a search, and prepare the points."""
        ranking = Ranking(self.points) if self.prepared is None else self.prepared.ranking
        plan = plan_sparse(problem, queries, self.points, ranking, within=within, held=held + self.taken)
        if self.prepared is not None:
            return self.prepared, plan
        return PreparedSparse(self.points, ranking, plan.metric), plan

    def nearest(self, queries: SparseRows, k: Any, rules: Rules | None = None, *, self_join: bool = False) -> Neighbors:
        """Find the k nearest allowed points of every query; entries are -1 where there are fewer than k."""
        problem = self.problem(queries, k, self_join=self_join)
        if not len(queries):
            return no_neighbors(problem.k, problem.n, problem.value_dtype)
        allowed, held = _native_rules(rules)
        own = self_join and allowed is None
        request = Request(k=problem.k, own=own, allowed=allowed, left=self.left)
        ready = self.ready(queries, problem, held=held)
        found = search_sparse(queries, *ready, request, progress=self.progress)
        counts = np.full(len(queries), problem.k)
        self._check_range(queries, found.distances.ravel(), found.indices.ravel(), counts)
        return found

    def within(
        self,
        queries: SparseRows,
        limits: npt.NDArray[Any],
        rules: Rules | None = None,
        *,
        most: int | None = None,
        own: bool = False,
        later: bool = False,
        rows: slice | None = None,
        ready: tuple[PreparedSparse, SparsePlan] | None = None,
    ) -> RadiusNeighbors:
        """Find all allowed points within the limits, or the `most` nearest of them.

        Parameters
        ----------
        queries : SparseRows
        limits : array of shape (m,)
        rules : Rules, optional
        most : int, optional
        own, later : bool
            Whether a query, which is a point, does not find itself; and whether it finds only points after itself.
        rows : slice, optional
            Consecutive queries to search; None for all.
        ready : (PreparedSparse, SparsePlan), optional
            The prepared points and the plan of all queries, if they are known.
        """
        if not len(queries) or not len(self.points):
            count = len(queries) if rows is None else rows.stop - rows.start
            return none_within(len(self.points), limits.dtype, count)
        allowed, held = _native_rules(rules)
        k = 0 if most is None else min(most, len(self.points))
        if ready is None:
            ready = self.ready(queries, self.problem(queries, max(1, k)), within=not k, held=held)
        request = Request(
            k=k, limits=limits, own=own and allowed is None, later=later, allowed=allowed, left=self.left, rows=rows
        )
        found = find_sparse(queries, *ready, request, progress=self.progress)
        first = 0 if rows is None else rows.start
        self._check_range(queries, found.distances, found.indices, np.diff(found.indptr), first)
        return found

    def count(self, queries: SparseRows, limits: npt.NDArray[Any], rules: Rules | None = None) -> npt.NDArray[np.int64]:
        """Count the allowed points within the limits of every query."""
        if not len(queries) or not len(self.points):
            return np.zeros(len(queries), np.int64)
        allowed, held = _native_rules(rules)
        ready = self.ready(queries, self.problem(queries, 1), within=True, held=held)
        request = Request(limits=limits, counted=True, allowed=allowed, left=self.left)
        counts = count_sparse(queries, *ready, request, progress=self.progress)
        silent = dataclasses.replace(self, progress=False)
        for block in self._doubtful(queries, limits, counts):
            silent.within(queries, limits, rules, rows=block, ready=ready)  # refuses values beyond their range
        return counts

    def with_ties(
        self, queries: SparseRows, k: Any, rules: Rules | None = None, *, self_join: bool = False
    ) -> RadiusNeighbors:
        """Find the k nearest allowed points of every query, and all others at the distance of the k-th."""
        problem = self.problem(queries, k, self_join=self_join)
        if not len(queries):
            return none_within(problem.n, problem.value_dtype)
        wanted = min(problem.k + 1, problem.n - self_join)
        near = self.nearest(queries, wanted, rules, self_join=self_join)
        first, tied, limits = first_and_tied(near, problem.k)
        if limits is None:
            return joined_ties(first, tied, None)
        rows = np.flatnonzero(tied)
        if rules is None and self_join:
            rules = Rules(m=len(queries), n=problem.n, own=True)
        with part("points at the k-th distance", len(rows)):
            ours = None if rules is None else rules.part(rows, None)
            more = dataclasses.replace(self, progress=False).within(queries.take(rows), limits, ours)
        return joined_ties(first, tied, more)

    def kth(self, k: Any) -> npt.NDArray[Any]:
        """Find the distance of every point to its k-th nearest other point."""
        problem, progress = self.problem(self.points, k, self_join=True), self.progress
        if callable(progress):
            counted, n = progress, len(self.points)

            def progress(done: int, total: int) -> None:
                counted(done // n, total // n)

        def check(rows: slice, found: Neighbors) -> None:
            counts = np.full(len(found.indices), problem.k)
            self._check_range(self.points, found.distances.ravel(), found.indices.ravel(), counts, rows.start)

        return kth_sparse(self.points, *self.ready(self.points, problem), check, progress=progress)

    def _doubtful(
        self, queries: SparseRows, limits: npt.NDArray[Any], counts: npt.NDArray[np.int64]
    ) -> Iterator[slice]:
        """Yield queries whose counts may depend on values that have overflowed or underflowed, in short blocks."""
        if self.metric.bits or self.metric.angular:
            return
        ends, magnitudes = np.finfo(limits.dtype), np.abs(limits)
        doubtful = np.zeros(len(limits), bool)
        if may_underflow(self.metric, queries, self.points):
            doubtful |= magnitudes < ends.tiny
        with np.errstate(over="ignore"):
            q, x = float(_largest(queries).max()), float(_largest(self.points).max())
            size = q * x if self.metric.products else (q + x) ** self.metric.power
            if not size * queries.d < float(ends.max):
                doubtful |= magnitudes >= ends.max
        rows = np.flatnonzero(doubtful)
        ends_of = np.cumsum(counts[rows]) // tuning.COUNTS_CHECKED
        breaks = np.flatnonzero((np.diff(rows) > 1) | (np.diff(ends_of) > 0)) + 1
        for block in np.split(rows, breaks) if len(rows) else ():
            yield slice(int(block[0]), int(block[-1]) + 1)

    def _check_range(
        self,
        queries: SparseRows,
        values: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        counts: npt.NDArray[np.int64],
        first: int = 0,
    ) -> None:
        """Refuse values that have overflowed or underflowed; see ``methods/rows/value_range.py``.

        The first count belongs to query `first`.
        """
        record, points = self.metric, self.points
        if record.bits or not len(values):
            return
        if np.isinf(values.min()) or np.isinf(values.max()):
            lost = np.isinf(values) & (indices >= 0)
            if lost.any():
                at = int(lost.argmax())
                raise refusal(first + int(np.repeat(np.arange(len(counts)), counts)[at]), values[at], record)
        if not may_underflow(record, queries, points):
            return
        tiny = float(np.finfo(values.dtype).tiny)
        under = np.flatnonzero((values < tiny) & (values > -tiny))
        if not len(under):
            return
        rows = np.searchsorted(counts.cumsum(), under, side="right") + first
        q, x = _largest(queries)[rows], _largest(points)[indices[under]]
        with np.errstate(under="ignore", over="ignore"):
            small = (q * x if record.products else np.square(np.maximum(q, x))) < tiny * DIGITS
        small &= ((q > 0) & (x > 0)) if record.products else ((q > 0) | (x > 0))
        for at, row in zip(under[small], rows[small], strict=True):
            if _differ(queries, int(row), points, int(indices[at]), products=record.products):
                raise refusal(int(row), values[at], record)


class SparseCall(NamedTuple):
    """The checked arguments of a public function on sparse rows, apart from k, radii and filters.

    Attributes
    ----------
    queries : SparseRows
        In a self-join, the same object as the points.
    among : Among
    """

    queries: SparseRows
    among: Among

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
        record = checked_metric(metric)
        check_place(method, device)
        threads, memory = inputs.check_threads(threads), inputs.parse_memory(memory)
        progress = inputs.check_progress(progress)
        base = as_sparse_rows(points, "points", sets=record.bits)
        rows = base if queries is points else as_sparse_rows(queries, "queries", sets=record.bits)
        if rows.d != base.d:
            raise ValueError(f"queries have {rows.d} columns, but points have {base.d}")
        return cls(rows, Among(base, record, threads, memory, progress))

    def limits(self, within: Radius) -> npt.NDArray[Any]:
        """Return the largest distance within the radius of each query."""
        value = value_dtype(self.queries.dtype, self.among.points.dtype)
        return limits_of(self.among.metric, len(self.queries), value, **within._asdict())

    def rules(self, given: Given, *, own: bool = False) -> Rules | None:
        """Return the checked filters; in a self-join, with one mask for all rows."""
        n = len(self.among.points)
        rules = given.rules(len(self.queries), n, own=own)
        if own and rules is not None and rules.mask is not None:
            raise ValueError(f"where: expected shape ({n},), one mask for all rows, got {rules.mask.shape}")
        return rules


def checked_metric(metric: Any) -> Metric:
    """Return the record of a metric; refuse one that does not support sparse rows."""
    record = get_metric(metric)
    why_not = metric_refusal(record.name)
    if why_not is not None:
        raise Unsupported(why_not)
    return record


def check_place(method: Any, device: Any) -> None:
    """Refuse a method or a device that does not support sparse rows."""
    if method not in ("auto", "exact"):
        raise Unsupported(f"method={method!r}: sparse rows have one method, an exact one; use method='auto'")
    if inputs.parse_device(device) not in ("auto", "cpu"):
        raise Unsupported(
            f"device={device!r}: sparse rows are searched on the CPU; leave device out, or use .toarray() if the "
            "rows fit in memory"
        )


def _native_rules(rules: Rules | None) -> tuple[_native.Allowed | None, int]:
    """Return rules as kernels read them, and the bytes of this form."""
    if rules is None:
        return None, 0
    allowed, held = rules.as_allowed(), rules.held_bytes()
    if allowed is None and rules.shared is None and rules.mask is not None:
        mask = np.ascontiguousarray(rules.mask)
        allowed, held = dataclasses.replace(rules, mask=mask).as_allowed(), held + mask.nbytes
    assert allowed is not None  # a call has a mask for all queries, or one for each
    return allowed.native, held


def sparse_search(
    queries: Any, points: Any, k: Any, given: Given, *, ties: bool, **options: Any
) -> Neighbors | RadiusNeighbors:
    """Find the k nearest sparse points of every sparse query; see :func:`tonari.search`."""
    call = SparseCall.of(queries, points, **options)
    rules = call.rules(given)
    with recording("search", len(call.queries)):
        find = call.among.with_ties if ties else call.among.nearest
        return find(call.queries, k, rules)


def sparse_graph(
    points: Any, k: Any, given: Given, *, include_self: Any, ties: bool, **options: Any
) -> KNNGraph | RadiusNeighbors:
    """Build the exact graph of sparse points; see :func:`tonari.knn_graph`."""
    include_self = inputs.check_flag(include_self, "include_self")
    call = SparseCall.of(points, points, **options)
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
    """Return the value between each point and itself: shape (n, 1)."""
    value = among.metric.self_value
    if value is not None:
        return np.full((len(among.points), 1), value, dtype)
    squares = np.empty(len(among.points))
    PreparedSparse(among.points, Ranking(among.points), among.metric.name).native.squares(squares)
    return squares.astype(dtype)[:, None]


def sparse_radius(
    queries: Any, points: Any, within: Radius, given: Given, *, max_neighbors: Any, **options: Any
) -> RadiusNeighbors:
    """Find all sparse points within a radius of every sparse query; see :func:`tonari.radius_search`."""
    call = SparseCall.of(queries, points, **options)
    limits, rules, most = call.limits(within), call.rules(given), _most(max_neighbors)
    with recording("radius_search", len(call.queries)):
        return call.among.within(call.queries, limits, rules, most=most)


def sparse_count(queries: Any, points: Any, within: Radius, given: Given, **options: Any) -> npt.NDArray[np.int64]:
    """Count the sparse points within a radius of every sparse query; see :func:`tonari.radius_count`."""
    call = SparseCall.of(queries, points, **options)
    limits, rules = call.limits(within), call.rules(given)
    with recording("radius_count", len(call.queries)):
        return call.among.count(call.queries, limits, rules)


def sparse_radius_graph(
    points: Any, within: Radius, given: Given, *, max_neighbors: Any, **options: Any
) -> RadiusNeighbors:
    """Find all other points within a radius of every sparse point; see :func:`tonari.radius_graph`."""
    call = SparseCall.of(points, points, **options)
    limits, rules, most = call.limits(within), call.rules(given, own=True), _most(max_neighbors)
    with recording("radius_graph", len(call.queries)):
        return call.among.within(call.queries, limits, rules, most=most, own=True)


def _most(max_neighbors: Any) -> int | None:
    return None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")


class SparsePairs:
    """All pairs of sparse points within a radius, for blocks of rows; see :func:`tonari.pairs`.

    Parameters
    ----------
    points : sparse rows
    within : Radius
    where, exclude_within
        As for :func:`tonari.pairs`.
    **options
        As for :meth:`SparseCall.of`.

    Attributes
    ----------
    n, count : int
        The numbers of all points and of points that `where` allows.
    dtype : dtype
        Of distances.
    """

    def __init__(self, points: Any, within: Radius, *, where: Any, exclude_within: Any, **options: Any) -> None:
        call = SparseCall.of(points, points, **options)
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
            memory = _native_rules(rules)[1]
            problem = call.among.problem(call.queries, 1)
            self._ready = call.among.ready(call.queries, problem, within=True, held=memory)

    def of(self, rows: slice, progress: ProgressLike) -> Pairs:
        """Find the pairs of consecutive rows with later rows."""
        among = dataclasses.replace(self._call.among, progress=progress)
        lists = among.within(
            self._call.queries, self._limits, self._rules, own=True, later=True, rows=rows, ready=self._ready
        )
        found = pairs_of(lists, rows.start)
        if self._ids is None:
            return found
        ids = self._ids.astype(index_dtype(self.n))
        return found._replace(left=ids[found.left], right=ids[found.right])


def sparse_kth(points: Any, k: Any, **options: Any) -> npt.NDArray[Any]:
    """Find the distance of every sparse point to its k-th nearest other point; see :func:`tonari.kth_distance`."""
    call = SparseCall.of(points, points, **options)
    with recording("kth_distance", len(call.queries)):
        return call.among.kth(k)


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
