"""Searches among sparse points, for all public functions: planning, filters, ties, and refusal of overflow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api import tuning
from tonari.core import _native
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, no_neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, none_within
from tonari.core.trail import part
from tonari.filters.rules import Rules
from tonari.filters.searches.asking import first_and_tied, joined_ties
from tonari.methods.places.value_range import DIGITS, may_underflow, refusal
from tonari.metrics import Metric
from tonari.sparse.cpu.search import PreparedSparse, Request, count_sparse, find_sparse, kth_sparse, search_sparse
from tonari.sparse.plan import SparsePlan, plan_sparse
from tonari.sparse.rows import Ranking, SparseRows, row_blocks


@dataclass(frozen=True, eq=False)
class Among:
    """Sparse points, with the options and prepared data that all searches among them share.

    Attributes
    ----------
    points : SparseRows
    metric : Metric
    threads, memory : int, optional
    progress : None, bool or callable(done, total)
    prepared : PreparedSparse, optional
        The prepared points of an Index; None if each search prepares the points.
    left : bool array of shape (n,), optional
        Mask of the points of an Index that are not removed; None if all remain.
    taken : int
        The bytes of `memory` that other data uses and a search cannot.
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
        """Plan a search, and prepare the points unless they are prepared already."""
        ranking = Ranking(self.points) if self.prepared is None else self.prepared.ranking
        plan = plan_sparse(problem, queries, self.points, ranking, within=within, held=held + self.taken)
        if self.prepared is not None:
            return self.prepared, plan
        return PreparedSparse(self.points, ranking, plan.metric), plan

    def nearest(self, queries: SparseRows, k: Any, rules: Rules | None = None, *, self_join: bool = False) -> Neighbors:
        """Find the k nearest allowed points of every query; lists with fewer points end with -1."""
        problem = self.problem(queries, k, self_join=self_join)
        if not len(queries):
            return no_neighbors(problem.k, problem.n, problem.value_dtype)
        allowed, held = native_rules(rules)
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
        """Find all allowed points within the limit of every query, or the `most` nearest of these.

        Parameters
        ----------
        queries : SparseRows
        limits : array of shape (m,)
            The largest distance (for similarities, the smallest) within the radius of each query.
        rules : Rules, optional
            The filters.
        most : int, optional
        own : bool
            Whether queries are the points, and no point finds itself.
        later : bool
            Whether queries are the points, and each finds only points after itself.
        rows : slice, optional
            The consecutive queries to search; None for all.
        ready : (PreparedSparse, SparsePlan), optional
            The prepared points and the plan for all queries, if an earlier call of :meth:`ready` returned them.
        """
        if not len(queries) or not len(self.points):
            count = len(queries) if rows is None else rows.stop - rows.start
            return none_within(len(self.points), limits.dtype, count)
        allowed, held = native_rules(rules)
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
        allowed, held = native_rules(rules)
        ready = self.ready(queries, self.problem(queries, 1), within=True, held=held)
        request = Request(limits=limits, counted=True, allowed=allowed, left=self.left)
        counts = count_sparse(queries, *ready, request, progress=self.progress)
        silent = dataclasses.replace(self, progress=False)
        for block in self._doubtful(queries, limits, counts):
            silent.within(queries, limits, rules, rows=block, ready=ready)  # raises ValueError for an overflow
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
        """Yield, as short slices, the queries whose counts may depend on distances that overflowed or underflowed."""
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
        """Raise ValueError if a distance has overflowed or underflowed; see ``methods/places/value_range.py``.

        `values` and `indices` are the concatenated lists of consecutive queries, `counts` are the lengths of the lists,
        and `first` is the row number of the first query.
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


def native_rules(rules: Rules | None) -> tuple[_native.Allowed | None, int]:
    """Return filters in the form that kernels read, and the size of this form in bytes."""
    if rules is None:
        return None, 0
    allowed, held = rules.as_allowed(), rules.held_bytes()
    if allowed is None and rules.shared is None and rules.mask is not None:
        mask = np.ascontiguousarray(rules.mask)
        allowed, held = dataclasses.replace(rules, mask=mask).as_allowed(), held + mask.nbytes
    assert allowed is not None  # a call has one mask for all queries or a mask for each query, never both
    return allowed.native, held


def _largest(rows: SparseRows) -> npt.NDArray[np.float64]:
    """Return the largest magnitude of the values in each row; 0 for empty rows."""
    out = np.zeros(len(rows))
    for block in row_blocks(rows.indptr):
        ends = rows.indptr[block.start : block.stop + 1]
        filled = np.flatnonzero(np.diff(ends))
        if len(filled):
            values = np.abs(rows.values[ends[0] : ends[-1]].astype(np.float64))
            out[block.start + filled] = np.maximum.reduceat(values, ends[filled] - ends[0])
    return out


def _differ(queries: SparseRows, row: int, points: SparseRows, point: int, *, products: bool) -> bool:
    """Whether the exact value of two rows is nonzero.

    This is the case if they share a column (inner product) or differ (distance).
    """
    (a, p), (b, q) = (
        (of.columns[of.indptr[at] : of.indptr[at + 1]], of.values[of.indptr[at] : of.indptr[at + 1]])
        for of, at in ((queries, row), (points, point))
    )
    if products:
        return bool(np.intersect1d(a, b).size)
    return not (np.array_equal(a, b) and np.array_equal(p, q))
