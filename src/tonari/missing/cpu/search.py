"""Searches among rows with missing values on the CPU: packed points, and tasks that search for blocks of queries.

See native/missing/block.hpp for the screen of a task, and for the proof that it loses no neighbour.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype, value_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.rows.slices import cut
from tonari.core.trail import current
from tonari.missing import tuning
from tonari.missing.memory import GROUP
from tonari.missing.plan import MissingPlan

Ids = npt.NDArray[np.int64]


class PreparedMissing:
    """Points with missing values, packed for the screen.

    Attributes
    ----------
    points : checked rows of shape (n, d)
        The original points.
    packed : _native.MissingPoints
        The centred points in float32; see native/missing/points.hpp.
    """

    def __init__(self, points: npt.NDArray[Any]) -> None:
        self.points = points
        self.packed = _native.MissingPoints(points)


class _Scan:
    """A search among rows with missing values, divided into blocks of queries.

    Parameters
    ----------
    queries : checked rows of shape (m, d)
    self_ids : int64 array of shape (m,), optional
        For each query, its own row number among the points, which it must not find.
    limits : array of shape (m,), optional
        The limit of each query, for a radius search instead of the k nearest.
    later : bool
        Whether a query finds only points with larger row numbers than its own.
    counted : bool
        Whether points within the limits are only counted, not listed.
    """

    def __init__(
        self,
        queries: npt.NDArray[Any],
        prepared: PreparedMissing,
        plan: MissingPlan,
        self_ids: Ids | None,
        *,
        limits: npt.NDArray[Any] | None = None,
        later: bool = False,
        counted: bool = False,
    ) -> None:
        self.queries, self.prepared, self.plan, self.self_ids = queries, prepared, plan, self_ids
        self.limits, self.later, self.counted = limits, later, counted
        self.workers = Workers(plan.threads)
        self.rows = cut(len(queries), plan.query_block)

    def run(self, take: Callable[[int, slice, _native.MissingBlock], None], progress: ProgressLike) -> None:
        """Search all blocks, and call ``take(number, rows, block)`` for each finished block, on any thread."""
        m, n, started = len(self.queries), len(self.prepared.points), time.perf_counter()
        with Progress(progress, total=m * n, seconds=self.plan.seconds, label="neighbours") as bar:

            def work(at: int) -> None:
                take(at, self.rows[at], self._scanned(self.rows[at], bar))

            self.workers.map(work, range(len(self.rows)))
        record = current.get()
        if record is not None:
            record.tried("rows with missing values", m, m, time.perf_counter() - started)

    def _scanned(self, rows: slice, bar: Progress) -> _native.MissingBlock:
        n, d = self.prepared.points.shape
        count, limits = rows.stop - rows.start, self.limits
        block = _native.MissingBlock(
            *(self.plan.isa, self.prepared.packed, self.queries[rows], self.plan.k if limits is None else 0),
            None if limits is None else np.ascontiguousarray(limits[rows], np.float64),
            *(None if self.self_ids is None else self.self_ids[rows], self.later, self.counted),
        )
        for groups in cut(-(-n // GROUP), max(1, tuning.SCANNED // (GROUP * count * d))):
            self.workers.check()
            block.scan(groups.start, groups.stop)
            bar.add(count * (min(groups.stop * GROUP, n) - groups.start * GROUP))
        return block


def search_missing(
    queries: npt.NDArray[Any],
    prepared: PreparedMissing,
    plan: MissingPlan,
    self_ids: Ids | None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k nearest points of each query; a list ends with -1 at inf if fewer share a column with the query."""
    found = Neighbors.empty(len(queries), plan.k, len(prepared.points), queries.dtype, prepared.points.dtype)

    def write(_: int, rows: slice, block: _native.MissingBlock) -> None:
        distances, indices, counts = found.distances[rows], found.indices[rows], _counts(block, rows)
        if (counts == plan.k).all():
            block.write(distances.reshape(-1), indices.reshape(-1))
            return
        values, ids = _lists(block, counts, found.distances.dtype, found.indices.dtype)
        there = np.arange(plan.k) < counts[:, None]
        distances[...], indices[...] = np.inf, -1
        distances[there], indices[there] = values, ids

    _Scan(queries, prepared, plan, self_ids).run(write, progress)
    return found


def find_missing(
    request: Within, prepared: PreparedMissing, plan: MissingPlan, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all points within the limit of each query; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    value = value_dtype(request.queries.dtype, prepared.points.dtype)
    index, m = index_dtype(len(prepared.points)), len(request.queries)
    counts, parts = np.zeros(m, np.int64), dict.fromkeys([-1], (np.empty(0, value), np.empty(0, index)))

    def hold(at: int, rows: slice, block: _native.MissingBlock) -> None:
        counts[rows] = _counts(block, rows)
        parts[at] = _lists(block, counts[rows], value, index)

    _within(request, prepared, plan).run(hold, progress)
    distances, indices = (np.concatenate(each) for each in zip(*(parts[at] for at in sorted(parts)), strict=True))
    return RadiusNeighbors(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), indices, distances)


def count_missing(request: Within, prepared: PreparedMissing, plan: MissingPlan, progress: ProgressLike = None) -> Ids:
    """Count the points that :func:`find_missing` finds for each query."""
    counts = np.zeros(len(request.queries), np.int64)

    def count(_: int, rows: slice, block: _native.MissingBlock) -> None:
        counts[rows] = _counts(block, rows)

    _within(request, prepared, plan, counted=True).run(count, progress)
    return counts


def _within(request: Within, prepared: PreparedMissing, plan: MissingPlan, *, counted: bool = False) -> _Scan:
    return _Scan(
        *(request.queries, prepared, plan, request.self_ids),
        limits=request.limits,
        later=request.later,
        counted=counted,
    )


def _counts(block: _native.MissingBlock, rows: slice) -> Ids:
    counts = np.empty(rows.stop - rows.start, np.int64)
    block.count(counts)
    return counts


def _lists(
    block: _native.MissingBlock, counts: Ids, value: npt.DTypeLike, index: npt.DTypeLike
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the distances and indices of all lists of a block, one list after another."""
    values, ids = np.empty(int(counts.sum()), value), np.empty(int(counts.sum()), index)
    block.write(values, ids)
    return values, ids
