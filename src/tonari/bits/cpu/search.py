"""Searches among rows of bits on the CPU: packed points, and tasks that compare blocks of queries with them.

A task compares a block of queries with a part of the points. Usually all points are a single part, and a task writes
the result of its block. If there are few queries, the points are cut into several parts, and their lists are merged
after all tasks. A search with a single block of queries reads every point once. To pack all points first would write
and read them once more, so each part is packed only when the search reaches it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.bits import tuning
from tonari.bits.plan import LANES, WORD, BitsPlan
from tonari.core import _native
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, later_points
from tonari.core.rows.slices import cut
from tonari.core.trail import current


class PreparedBits:
    """Points as rows of bits, packed in the layout that kernels read.

    Attributes
    ----------
    n, d : int
        The number of points, and of bytes per point.
    words : uint32 array of shape (groups, words, 16)
        The bits of groups of 16 points, word by word; see native/bits/pack.hpp.
    counts : int32 array of shape (groups, 16)
        The number of set bits in each point.
    """

    def __init__(self, points: npt.NDArray[np.uint8], plan: BitsPlan) -> None:
        self.n, self.d = points.shape
        self.words = np.empty((-(-self.n // LANES), -(-self.d // WORD), LANES), np.uint32)
        self.counts = np.empty((len(self.words), LANES), np.int32)
        workers = Workers(plan.threads)

        def pack(part: slice) -> None:
            workers.check()
            groups = slice(part.start // LANES, -(-part.stop // LANES))
            _native.pack_bits(points[part], self.words[groups], self.counts[groups])

        workers.map(pack, cut(self.n, LANES * max(1, tuning.PACKED_BYTES // (LANES * self.d))))

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint32] | None, npt.NDArray[np.int32] | None, None]:
        """The arguments of a native block for the points: `words`, `counts`, and None for unpacked rows."""
        return self.words, self.counts, None


class UnpackedBits:
    """Points as rows of bits that a single search packs when it reaches them; see :class:`PreparedBits`."""

    def __init__(self, points: npt.NDArray[np.uint8]) -> None:
        self.n, self.d = points.shape
        self.arrays = None, None, points


class Scan:
    """A search among rows of bits on the CPU, divided into blocks of queries.

    Parameters
    ----------
    queries : uint8 array of shape (m, d), checked
    self_ids : int64 array of shape (m,), optional
        For each query, its own row number among the points, which it must not find.
    limits : float32 array of shape (m,), optional
        The limit of each query, for a radius search instead of the k nearest.
    lists : bool
        Whether to list the points within the limits, or only to count them.
    """

    def __init__(
        self,
        queries: npt.NDArray[np.uint8],
        prepared: PreparedBits | UnpackedBits,
        plan: BitsPlan,
        self_ids: npt.NDArray[np.int64] | None,
        *,
        limits: npt.NDArray[np.float32] | None = None,
        lists: bool = True,
    ) -> None:
        self.queries, self.prepared, self.plan = queries, prepared, plan
        self.limits, self.self_ids, self.lists = limits, self_ids, lists
        self.workers = Workers(plan.threads)
        self.rows = cut(len(queries), plan.query_block)

    def run(self, take: Any, progress: ProgressLike) -> None:
        """Compare all blocks with all points, and call ``take(number, rows, block)`` for each finished block.

        The calls may run on any thread.
        """
        plan, groups, started = self.plan, -(-self.prepared.n // LANES), time.perf_counter()
        parts = cut(groups, -(-groups // plan.parts))
        found: dict[tuple[int, int], _native.BitBlock] = {}
        total = len(self.queries) * self.prepared.n
        with Progress(progress, total=total, seconds=plan.seconds, label="neighbours") as bar:

            def work(task: tuple[int, int]) -> None:
                at, part = task
                block = self._scanned(self.rows[at], parts[part], bar)
                if len(parts) == 1:
                    take(at, self.rows[at], block)
                else:
                    found[task] = block

            self.workers.map(work, [(at, part) for at in range(len(self.rows)) for part in range(len(parts))])

            def merge(at: int) -> None:
                self.workers.check()
                block = found.pop((at, 0))
                for part in range(1, len(parts)):
                    block.absorb(found.pop((at, part)))
                take(at, self.rows[at], block)

            if len(parts) > 1:
                self.workers.map(merge, range(len(self.rows)))
        record = current.get()
        if record is not None:
            record.tried("all bits", len(self.queries), len(self.queries), time.perf_counter() - started)

    def _scanned(self, rows: slice, groups: slice, bar: Progress) -> _native.BitBlock:
        """Compare a block of queries with a part of the points, given as groups of 16 points."""
        plan, held, count = self.plan, self.prepared, rows.stop - rows.start
        own = None if self.self_ids is None else self.self_ids[rows]
        limits = None if self.limits is None else np.ascontiguousarray(self.limits[rows])
        words, counts, unpacked = held.arrays
        block = _native.BitBlock(
            *(plan.isa, plan.metric, self.queries[rows], words, counts, unpacked, held.n, plan.k),
            *(limits, own, self.lists),
        )
        step = max(1, tuning.SCANNED_WORDS // (count * -(-held.d // WORD)))
        for begin in range(groups.start, groups.stop, step):
            self.workers.check()
            end = min(begin + step, groups.stop)
            block.scan(begin, end)
            bar.add(count * (min(end * LANES, held.n) - begin * LANES))
        return block


def search_bits(
    queries: npt.NDArray[np.uint8],
    prepared: PreparedBits | UnpackedBits,
    plan: BitsPlan,
    self_ids: npt.NDArray[np.int64] | None,
    progress: ProgressLike = None,
) -> Neighbors:
    """Find the k nearest points of each query."""
    m, k = len(queries), plan.k
    found = Neighbors.empty(m, k, prepared.n)

    def write(_: int, rows: slice, block: _native.BitBlock) -> None:
        block.write(found.distances[rows].reshape(-1), found.indices[rows].reshape(-1))

    Scan(queries, prepared, plan, self_ids).run(write, progress)
    return found


def find_bits(
    request: Within, prepared: PreparedBits, plan: BitsPlan, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all points within the radius of each query; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    if request.later:
        return later_points(find_bits(request._replace(later=False), prepared, plan, progress), request.first)
    counts = np.empty(len(request.queries), np.int64)
    blocks: dict[int, _native.BitBlock] = {}

    def hold(at: int, rows: slice, block: _native.BitBlock) -> None:
        block.count(counts[rows])
        blocks[at] = block

    scan = Scan(request.queries, prepared, plan, request.self_ids, limits=request.limits)
    scan.run(hold, progress)
    indptr = np.concatenate([np.zeros(1, np.int64), counts]).cumsum()
    distances, indices = np.empty(indptr[-1], np.float32), np.empty(indptr[-1], index_dtype(prepared.n))

    def write(at: int) -> None:
        scan.workers.check()
        rows = scan.rows[at]
        here = slice(indptr[rows.start], indptr[rows.stop])
        blocks.pop(at).write(distances[here], indices[here])

    scan.workers.map(write, range(len(scan.rows)))
    return RadiusNeighbors(indptr, indices, distances)


def count_bits(
    request: Within, prepared: PreparedBits, plan: BitsPlan, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count the points that :func:`find_bits` finds for each query."""
    counts = np.empty(len(request.queries), np.int64)

    def count(_: int, rows: slice, block: _native.BitBlock) -> None:
        block.count(counts[rows])

    scan = Scan(request.queries, prepared, plan, request.self_ids, limits=request.limits, lists=False)
    scan.run(count, progress)
    return counts
