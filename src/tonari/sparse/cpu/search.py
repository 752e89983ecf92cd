"""Searches among sparse rows on the CPU: prepared points, and blocks of queries distributed among threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.rows.slices import cut
from tonari.core.trail import current
from tonari.metrics import get_metric
from tonari.sparse import tuning
from tonari.sparse.memory import BLOCK
from tonari.sparse.plan import SparsePlan
from tonari.sparse.rows import Ranking, SparseRows


class PreparedSparse:
    """Sparse points, prepared with inverted lists: for each column the points that have it.

    Attributes
    ----------
    rows : SparseRows
        The points.
    ranking : Ranking
        The columns in descending order of the number of points that have them.
    native : _native.SparsePoints
        The inverted lists; see native/sparse/points.hpp.
    """

    def __init__(self, rows: SparseRows, ranking: Ranking, metric: str) -> None:
        self.rows, self.ranking = rows, ranking
        self.native = _native.SparsePoints(metric, rows.native, ranking.points, len(ranking.counts))


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A request for a search among sparse rows: the number or the limit of neighbours, and the points allowed.

    Attributes
    ----------
    k : int
        The number of points that each query finds, 0 for all within its limit.
    limits : array of shape (m,), optional
        The limit of each query (:func:`tonari.core.results.radius_neighbors.limits_for`).
    own : bool
        Whether the queries are the points, and no point finds itself.
    later : bool
        Whether a query finds only points with larger row numbers than its own.
    counted : bool
        Whether points within the limits are only counted, not listed.
    allowed : _native.Allowed, optional
        The rules of the call, which then include `own`.
    left : bool array of shape (n,), optional
        A mask of the points of an Index that have not been removed.
    rows : slice, optional
        The queries to search for; None for all.
    """

    k: int = 0
    limits: npt.NDArray[Any] | None = None
    own: bool = False
    later: bool = False
    counted: bool = False
    allowed: _native.Allowed | None = None
    left: npt.NDArray[np.bool_] | None = None
    rows: slice | None = None

    @property
    def filtered(self) -> bool:
        """Whether a query may find fewer than k points."""
        return any(rule is not None for rule in (self.limits, self.allowed, self.left))


class Scan:
    """A search among sparse rows, divided into blocks of queries."""

    def __init__(self, queries: SparseRows, prepared: PreparedSparse, plan: SparsePlan, request: Request) -> None:
        self.queries, self.prepared, self.plan, self.request = queries, prepared, plan, request
        ranking = prepared.ranking
        self.ranks = ranking.points if queries is prepared.rows else ranking.of(queries)
        self.workers = Workers(plan.threads)
        queried = slice(0, len(queries)) if request.rows is None else request.rows
        self.first, self.count = queried.start, queried.stop - queried.start
        self.rows = cut(self.count, plan.query_block)

    def run(self, take: Callable[[int, slice, _native.SparseBlock], None], progress: ProgressLike) -> None:
        """Search all blocks, and call ``take(number, rows, block)`` for each finished block, on any thread.

        `rows` is the block's slice of the queries of the request.
        """
        m, n, started = self.count, len(self.prepared.rows), time.perf_counter()
        with Progress(progress, total=m * n, seconds=self.plan.seconds, label="neighbours") as bar:

            def work(at: int) -> None:
                take(at, self.rows[at], self._searched(self.rows[at], bar))

            self.workers.map(work, range(len(self.rows)))
        record = current.get()
        if record is not None:
            record.tried("sparse rows", m, m, time.perf_counter() - started)

    def _searched(self, rows: slice, bar: Progress) -> _native.SparseBlock:
        n, count = len(self.prepared.rows), rows.stop - rows.start
        asked, begin, end = self.request, self.first + rows.start, self.first + rows.stop
        limits = None if asked.limits is None else np.ascontiguousarray(asked.limits[begin:end], np.float64)
        block = _native.SparseBlock(
            *(self.plan.isa, self.prepared.native, self.queries.native, self.ranks, begin, end, asked.k, limits),
            *(asked.own, asked.later, asked.counted, asked.allowed, asked.left),
        )
        for at in range(-(-n // BLOCK)):
            self.workers.check()
            block.scan(at, at + 1)
            bar.add(count * (min((at + 1) * BLOCK, n) - at * BLOCK))
        for part in cut(count, tuning.REFINED_QUERIES):
            self.workers.check()
            block.refine(part.start, part.stop)
        return block


def search_sparse(
    queries: SparseRows,
    prepared: PreparedSparse,
    plan: SparsePlan,
    request: Request | None = None,
    *,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k nearest points of each query; missing entries are -1 at distance inf, or -inf for similarities."""
    request = Request(k=plan.k) if request is None else request
    found = Neighbors.empty(len(queries), request.k, len(prepared.rows), queries.dtype, prepared.rows.dtype)

    def write(_: int, rows: slice, block: _native.SparseBlock) -> None:
        distances, indices = found.distances[rows], found.indices[rows]
        if not request.filtered:
            block.write(distances.reshape(-1), indices.reshape(-1))
            return
        counts, values, ids = _written(block, len(distances), found)
        present = np.arange(request.k) < counts[:, None]
        distances[...] = -np.inf if get_metric(plan.metric).descending else np.inf
        indices[...] = -1
        distances[present], indices[present] = values, ids

    Scan(queries, prepared, plan, request).run(write, progress)
    return found


def find_sparse(
    queries: SparseRows,
    prepared: PreparedSparse,
    plan: SparsePlan,
    request: Request,
    *,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points within the limit of each query of the request, or the k nearest of these points."""
    scan = Scan(queries, prepared, plan, request)
    none = Neighbors.empty(0, 0, len(prepared.rows), queries.dtype, prepared.rows.dtype)
    counts = np.zeros(scan.count, np.int64)
    parts: dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def hold(at: int, rows: slice, block: _native.SparseBlock) -> None:
        counts[rows], *lists = _written(block, rows.stop - rows.start, none)
        parts[at] = (lists[0], lists[1])

    scan.run(hold, progress)
    indptr = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
    distances, indices = np.empty(indptr[-1], none.distances.dtype), np.empty(indptr[-1], none.indices.dtype)
    for at, rows in enumerate(scan.rows):
        here = slice(indptr[rows.start], indptr[rows.stop])
        distances[here], indices[here] = parts.pop(at)
    return RadiusNeighbors(indptr, indices, distances)


def count_sparse(
    queries: SparseRows,
    prepared: PreparedSparse,
    plan: SparsePlan,
    request: Request,
    *,
    progress: ProgressLike = None,
) -> npt.NDArray[np.int64]:
    """Count the points within the limit of each query of the request."""
    counts = np.zeros(len(queries), np.int64)

    def count(_: int, rows: slice, block: _native.SparseBlock) -> None:
        block.count(counts[rows])

    Scan(queries, prepared, plan, request).run(count, progress)
    return counts


def kth_sparse(
    points: SparseRows,
    prepared: PreparedSparse,
    plan: SparsePlan,
    check: Callable[[slice, Neighbors], None],
    *,
    progress: ProgressLike = None,
) -> npt.NDArray[Any]:
    """Return the distance of each point to its k-th nearest other point, without storing all neighbour lists.

    ``check(rows, found)`` is called on any thread with the neighbour lists of each block, to check their values.
    """
    out = np.empty(len(points), points.dtype)

    def write(_: int, rows: slice, block: _native.SparseBlock) -> None:
        found = Neighbors.empty(rows.stop - rows.start, plan.k, len(points), points.dtype)
        block.write(found.distances.reshape(-1), found.indices.reshape(-1))
        check(rows, found)
        out[rows] = found.distances[:, -1]

    Scan(points, prepared, plan, Request(k=plan.k, own=True)).run(write, progress)
    return out


def _written(
    block: _native.SparseBlock, m: int, like: Neighbors
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the length of each query's list in a block, and the concatenated distances and indices."""
    counts = np.zeros(m, np.int64)
    block.count(counts)
    distances = np.empty(int(counts.sum()), like.distances.dtype)
    indices = np.empty(len(distances), like.indices.dtype)
    block.write(distances, indices)
    return counts, distances, indices
