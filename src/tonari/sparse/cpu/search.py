"""Search sparse rows on the CPU: prepare the points, and distribute blocks of queries among threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.core.slices import cut
from tonari.core.trail import current
from tonari.sparse import tuning
from tonari.sparse.memory import BLOCK
from tonari.sparse.plan import SparsePlan
from tonari.sparse.rows import Ranking, SparseRows


class PreparedSparse:
    """Sparse points with the inverted lists of their columns.

    Attributes
    ----------
    rows : SparseRows
    ranking : Ranking
    native : _native.SparsePoints
        See native/sparse/points.hpp.
    """

    def __init__(self, rows: SparseRows, ranking: Ranking, metric: str) -> None:
        self.rows, self.ranking = rows, ranking
        self.native = _native.SparsePoints(metric, rows.native, ranking.points, len(ranking.counts))


class Scan:
    """One search among sparse rows, divided into blocks of queries.

    Parameters
    ----------
    queries : SparseRows
        Of the dtype of the points.
    limits : float64 array of shape (m,), optional
        The limit of each query, for a radius search instead of the k nearest.
    own : bool
        Whether the queries are the points, and do not find themselves.
    later : bool
        Whether a query finds only points after its own.
    """

    def __init__(
        self,
        queries: SparseRows,
        prepared: PreparedSparse,
        plan: SparsePlan,
        *,
        limits: npt.NDArray[np.float64] | None = None,
        own: bool = False,
        later: bool = False,
    ) -> None:
        self.queries, self.prepared, self.plan = queries, prepared, plan
        self.limits, self.own, self.later = limits, own, later
        ranking = prepared.ranking
        self.ranks = ranking.points if queries is prepared.rows else ranking.of(queries)
        self.workers = Workers(plan.threads)
        self.rows = cut(len(queries), plan.query_block)

    def run(self, take: Callable[[int, slice, _native.SparseBlock], None], progress: ProgressLike) -> None:
        """Call ``take(number, rows, block)`` on any thread when the answers of a block are known."""
        m, n, started = len(self.queries), len(self.prepared.rows), time.perf_counter()
        with Progress(progress, total=m * n, seconds=self.plan.seconds, label="neighbours") as bar:

            def work(at: int) -> None:
                take(at, self.rows[at], self._searched(self.rows[at], bar))

            self.workers.map(work, range(len(self.rows)))
        record = current.get()
        if record is not None:
            record.tried("sparse rows", m, m, time.perf_counter() - started)

    def _searched(self, rows: slice, bar: Progress) -> _native.SparseBlock:
        n, count = len(self.prepared.rows), rows.stop - rows.start
        limits = None if self.limits is None else np.ascontiguousarray(self.limits[rows])
        block = _native.SparseBlock(
            *(self.plan.isa, self.prepared.native, self.queries.native, self.ranks, rows.start, rows.stop),
            *(self.plan.k, limits, self.own, self.later),
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
    queries: SparseRows, prepared: PreparedSparse, plan: SparsePlan, *, own: bool = False, progress: ProgressLike = None
) -> Neighbors:
    """Find the k nearest points of every query."""
    found = Neighbors.empty(len(queries), plan.k, len(prepared.rows), queries.dtype)

    def write(_: int, rows: slice, block: _native.SparseBlock) -> None:
        block.write(found.distances[rows].reshape(-1), found.indices[rows].reshape(-1))

    Scan(queries, prepared, plan, own=own).run(write, progress)
    return found


def find_sparse(
    queries: SparseRows,
    prepared: PreparedSparse,
    plan: SparsePlan,
    limits: npt.NDArray[Any],
    *,
    own: bool = False,
    later: bool = False,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points within the limit of each query."""
    counts = np.zeros(len(queries), np.int64)
    blocks: dict[int, _native.SparseBlock] = {}

    def hold(at: int, rows: slice, block: _native.SparseBlock) -> None:
        block.count(counts[rows])
        blocks[at] = block

    scan = Scan(queries, prepared, plan, limits=limits.astype(np.float64), own=own, later=later)
    scan.run(hold, progress)
    indptr = np.concatenate([np.zeros(1, np.int64), counts.cumsum()])
    distances, indices = np.empty(indptr[-1], queries.dtype), np.empty(indptr[-1], np.int32)

    def write(at: int) -> None:
        scan.workers.check()
        rows = scan.rows[at]
        here = slice(indptr[rows.start], indptr[rows.stop])
        blocks.pop(at).write(distances[here], indices[here])

    scan.workers.map(write, range(len(scan.rows)))
    return RadiusNeighbors(indptr, indices, distances)


def kth_sparse(
    points: SparseRows, prepared: PreparedSparse, plan: SparsePlan, *, progress: ProgressLike = None
) -> npt.NDArray[Any]:
    """Find the distance of every point to its k-th nearest other point; only lists of running blocks are stored."""
    out = np.empty(len(points), points.dtype)

    def write(_: int, rows: slice, block: _native.SparseBlock) -> None:
        distances = np.empty((rows.stop - rows.start, plan.k), points.dtype)
        block.write(distances.reshape(-1), np.empty(distances.size, np.int32))
        out[rows] = distances[:, -1]

    Scan(points, prepared, plan, own=True).run(write, progress)
    return out
