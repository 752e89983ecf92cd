"""Searches among rows with missing values on the CPU.

Inner products find all points within a limit of each query (``products.py``), and exact distances order them. For the k
nearest, the limit is estimated from a sample of the points. Queries that find fewer than k points within their limit
are searched again within larger limits, and finally among all points with a common column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.problem import Problem
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.results.neighbors import Neighbors, index_dtype, value_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.rows.slices import cut
from tonari.core.trail import current
from tonari.exact.cpu.method import ExactOnCpu
from tonari.metrics.reference import returned
from tonari.missing import tuning
from tonari.missing.cpu.values import pair_values
from tonari.missing.plan import MissingPlan, plan_products, products_of
from tonari.missing.products import ALL, QueryRows, point_rows, query_rows

Ids = npt.NDArray[np.int64]

_EXACT = ExactOnCpu()


class PreparedMissing:
    """Points with missing values, transformed for inner products and prepared for brute force.

    Attributes
    ----------
    points : checked rows of shape (n, d)
        The original points.
    form : Form
        The centring and scaling of the transformed rows.
    rows : float64 array of shape (n, 3 d + 1)
        The transformed points; see :func:`tonari.missing.products.point_rows`.
    """

    def __init__(self, points: npt.NDArray[Any], plan: MissingPlan, progress: ProgressLike = None) -> None:
        self.points = points
        self.form, self.rows = point_rows(points)
        self._plan = plan_products(_problem(plan, plan.query_block))
        self._packed = _EXACT.prepare(self.rows, self._plan, progress if isinstance(progress, bool) else None)

    def within(self, request: Within, plan: MissingPlan) -> RadiusNeighbors:
        """Find, for each transformed query, the points with an inner product of at least the query's limit."""
        products = _EXACT.plan(products_of(_problem(plan, len(request.queries))), prepared_by=self._plan)
        return _EXACT.find_within(request, self._packed, products, False)


class Pairs(NamedTuple):
    """Pairs of a query and a point with their returned distances, in order of (query, distance, point)."""

    rows: Ids
    ids: Ids
    values: npt.NDArray[Any]


class _Search:
    """A search for the neighbours of queries among prepared points.

    Attributes
    ----------
    listed : int
        The number of pairs whose exact distances have been computed so far.
    """

    def __init__(
        self, queries: npt.NDArray[Any], prepared: PreparedMissing, plan: MissingPlan, own: Ids | None
    ) -> None:
        self.queries, self.prepared, self.plan, self.own = queries, prepared, plan, own
        self.dtype = value_dtype(queries.dtype, prepared.points.dtype)
        self.listed = 0

    def pairs(self, rows: Ids, those: QueryRows, means: npt.NDArray[np.float64], *, later: bool = False) -> Pairs:
        """Return the pairs within the limits of the queries `rows`, and maybe a few more, all with exact distances.

        Parameters
        ----------
        rows : int64 array
            The row numbers of the queries.
        those : QueryRows
            The queries, centred and scaled.
        means : float64 array
            The limits of the queries: see :meth:`tonari.missing.products.QueryRows.with_means`.
        later : bool
            Whether a query finds only points with larger row numbers than its own.
        """
        wide, least = those.with_means(means)
        own = None if self.own is None else self.own[rows]
        found = self.prepared.within(Within(wide, least, own, later), self.plan)
        self.listed += len(found.indices)
        of, ids = np.repeat(rows, np.diff(found.indptr)), found.indices.astype(np.int64)
        values = returned(pair_values(self.queries, self.prepared.points, of, ids, self.plan.threads), self.dtype)
        there = ~np.isnan(values)
        of, ids, values = of[there], ids[there], values[there]
        order = np.lexsort((ids, values, of))
        return Pairs(of[order], ids[order], values[order])

    def each(self, work: Callable[[Ids, QueryRows], None], progress: ProgressLike) -> None:
        """Call ``work(rows, queries)`` for consecutive blocks of queries, small ones if queries find many points."""
        m, n = len(self.queries), len(self.prepared.points)
        begin, size = 0, max(1, min(self.plan.query_block, tuning.PAIRS_HELD // n))
        with Progress(progress, total=m * n, seconds=self.plan.seconds, label="neighbours") as bar:
            while begin < m:
                rows, before = np.arange(begin, min(begin + size, m)), self.listed
                work(rows, query_rows(self.queries[rows], self.prepared.form))
                bar.add(len(rows) * n)
                begin += len(rows)
                fitting = max(1, tuning.PAIRS_HELD * len(rows) // max(1, self.listed - before))
                size = min(self.plan.query_block, fitting, tuning.GROWTH * size)


class _Left(NamedTuple):
    """Queries whose k neighbours have not all been found yet.

    Attributes
    ----------
    rows : int64 array of shape (m,)
        The row numbers of the queries.
    those : QueryRows
        The queries, centred and scaled.
    estimates : float64 array of shape (m, columns)
        The limits of each query's successive searches; the limits in the last column include all points.
    tries : int
        The number of searches so far.
    """

    rows: Ids
    those: QueryRows
    estimates: npt.NDArray[np.float64]
    tries: int = 0

    @property
    def means(self) -> npt.NDArray[np.float64]:
        """The limits of the next search."""
        return self.estimates[:, self.tries]

    def some(self, which: npt.NDArray[Any]) -> _Left:
        """Return the queries that an index array or a mask selects."""
        return _Left(self.rows[which], self.those.some(which), self.estimates[which], self.tries)


def search_missing(
    queries: npt.NDArray[Any],
    prepared: PreparedMissing,
    plan: MissingPlan,
    self_ids: Ids | None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k nearest points of each query; a list ends with -1 at inf if fewer share a column with the query."""
    search = _Search(queries, prepared, plan, self_ids)
    n = len(prepared.points)
    found = Neighbors.empty(len(queries), plan.k, n, search.dtype)
    found.distances[:], found.indices[:] = np.inf, -1
    most, tried = max(1, tuning.PAIRS_HELD // n), np.zeros((2, 2), np.int64)

    def work(rows: Ids, those: QueryRows) -> None:
        todo = [_Left(rows, those, _estimates(those, prepared, plan))]
        while todo:
            some = todo.pop()
            among_all = some.means >= ALL
            if among_all.any() and (not among_all.all() or len(among_all) > most):
                places = np.flatnonzero(among_all)
                todo += [some.some(places[part]) for part in cut(len(places), most)]
                todo += [some.some(~among_all)] if not among_all.all() else []
                continue
            done = _take_nearest(found, some, search.pairs(some.rows, some.those, some.means))
            tried[min(some.tries, 1)] += len(done), done.sum()
            if not done.all():
                todo.append(some.some(~done)._replace(tries=some.tries + 1))

    search.each(work, progress)
    record = current.get()
    if record is not None:
        for name, (asked, proved) in zip(("an estimated distance", "a larger distance"), tried.tolist(), strict=True):
            if asked:
                record.tried(f"points within {name}", asked, proved)
    return found


def find_missing(
    request: Within, prepared: PreparedMissing, plan: MissingPlan, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all points within the limit of each query; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    search = _Search(request.queries, prepared, plan, request.self_ids)
    none = np.empty(0, np.int64)
    parts = [Pairs(none, none, np.empty(0, search.dtype))]

    def work(rows: Ids, those: QueryRows) -> None:
        pairs = search.pairs(rows, those, those.means_of(request.limits[rows]), later=request.later)
        inside = pairs.values <= request.limits[pairs.rows]
        parts.append(Pairs(*(each[inside] for each in pairs)))

    search.each(work, progress)
    of, ids, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    counts = np.bincount(of, minlength=len(request.queries))
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    return RadiusNeighbors(indptr, ids.astype(index_dtype(len(prepared.points))), values)


def count_missing(
    request: Within, prepared: PreparedMissing, plan: MissingPlan, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count the points that :func:`find_missing` finds for each query."""
    counts: npt.NDArray[np.int64] = np.diff(find_missing(request, prepared, plan, progress).indptr)
    return counts


def _estimates(those: QueryRows, prepared: PreparedMissing, plan: MissingPlan) -> npt.NDArray[np.float64]:
    """Estimate for each query, from a sample, limits on the mean squared difference that include k points.

    Column i of the result has each query's limit for its search i, counted from 0. Limits grow from column to column;
    the last column is infinite.
    """
    n, k = len(prepared.points), plan.k
    sample = prepared.rows[:: -(-n // plan.sample)]
    expected = k * len(sample) / n
    first = min(len(sample), int(np.ceil(expected + tuning.SPREAD * np.sqrt(expected))) + 1)
    ranks = [first]
    while ranks[-1] * tuning.WIDENING <= len(sample):
        ranks.append(ranks[-1] * tuning.WIDENING)
    places = np.array(ranks) - 1
    limits = np.partition(those.means(sample), places, axis=1)[:, places].astype(np.float64)
    return np.column_stack([limits * (1 + tuning.SPACE), np.full(len(limits), np.inf)])


def _take_nearest(found: Neighbors, some: _Left, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Write the k nearest points of each query in `pairs` to `found`, and return a mask of the completed queries.

    A query is complete if its k-th distance is within its limit, since all points within the limit have been found.
    """
    k, begins = found.indices.shape[1], np.searchsorted(pairs.rows, some.rows)
    counts = np.searchsorted(pairs.rows, some.rows, side="right") - begins
    rank = np.arange(len(pairs.rows)) - np.repeat(begins, counts)
    first = rank < k
    found.distances[pairs.rows[first], rank[first]] = pairs.values[first]
    found.indices[pairs.rows[first], rank[first]] = pairs.ids[first]
    last = found.distances[some.rows, k - 1]
    within: npt.NDArray[np.bool_] = some.those.means_of(last) <= some.means
    complete: npt.NDArray[np.bool_] = (within & (counts >= k)) | (some.means >= ALL)
    return complete


def _problem(plan: MissingPlan, m: int) -> Problem:
    return Problem(
        n=plan.n,
        m=m,
        d=plan.d,
        k=1,
        dtype=plan.dtype,
        query_dtype=plan.dtype,
        metric=plan.metric,
        threads=plan.threads,
    )
