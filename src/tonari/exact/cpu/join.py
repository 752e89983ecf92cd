"""Self-joins: each product of two rows is computed once, for both rows (komarov2014, section 4: half the matrix).

Active rows have their thresholds and lists of candidates in memory at the same time. All threads share these, so
that the product of any two active rows can be used for both (``native/exact/self_join.hpp``).
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.exact import tuning
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.memory import JOIN_BLOCK
from tonari.exact.plan import ExactPlan

Bounds: TypeAlias = tuple[int, int]  # rows [begin, end)

# Ranges of points to compare a block with, each with a flag: whether its products are used for both rows of a pair.
Spans: TypeAlias = Iterable[tuple[Bounds, bool]]
Status: TypeAlias = npt.NDArray[np.uint8]


def join_of(
    prepared: PreparedPoints,
    plan: ExactPlan,
    kernel: str,
    self_ids: npt.NDArray[np.int64],
    *,
    double: bool,
    may_retry: bool,
) -> _native.SelfJoin:
    """Create the native self-join, which keeps the thresholds and survivors of active rows; no row is active yet."""
    return _native.SelfJoin(
        *(kernel, prepared.form, prepared.points, plan.k, plan.isa, self_ids),
        *(double, may_retry),
        *(plan.capacity, tuning.JOIN_GROWTH),
        prepared.look,
        prepared.order,
        prepared.sketch,
    )


@dataclass(frozen=True)
class Join:
    """A self-join of packed points. Each method returns the number of candidates whose exact value was computed."""

    prepared: PreparedPoints
    plan: ExactPlan
    workers: Workers
    bar: Progress
    packed: list[_native.PackedPoints]
    native: _native.SelfJoin

    def all_points(self, found: Neighbors, status: Status, first: int) -> int:
        """Find the neighbours, among all points, of row `first` and all later rows; return the number of exact values.

        `found` and `status` have one entry for each of these rows, and receive the results.
        """
        n, size = len(self.prepared.points), self.plan.active_rows
        starts = range(first // JOIN_BLOCK * JOIN_BLOCK, n, size)
        return sum(self._of_active((begin, min(begin + size, n)), found, status, first) for begin in starts)

    def across(self, found: Neighbors, status: Status, boundary: int, known: npt.NDArray[np.float64] | None) -> int:
        """Find, for every row, the nearest points on the other side of a boundary between two slices of points.

        `known` has, for each row, the distance of its k-th neighbour so far. A row then finds only points that are at
        least as near; if there are fewer than k such points, the remaining entries are missing.
        """
        sides = (0, boundary), (boundary, len(self.prepared.points))
        blocks = [_blocks(side) for side in sides]
        self._meet((0, sides[1][1]), blocks[0], lambda block: [(sides[1], True)], known)
        return sum(
            self._finish(own, found, status, 0, other) for own, other in zip(blocks, reversed(sides), strict=True)
        )

    def _of_active(self, active: Bounds, found: Neighbors, status: Status, first: int) -> int:
        def spans(block: Bounds) -> Spans:
            # A product is used for only one of its rows if the other row is inactive, or if both are in the block.
            yield (0, active[0]), False
            yield block, False
            yield (block[1], active[1]), True
            yield (active[1], len(self.prepared.points)), False

        blocks = _blocks(active)
        self._meet(active, blocks, spans)
        return self._finish(blocks, found, status, first, (0, len(self.prepared.points)))

    def _meet(
        self,
        active: Bounds,
        blocks: list[Bounds],
        spans_of: Callable[[Bounds], Spans],
        known: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Compare each block of active rows with the ranges of points that `spans_of` returns for it."""
        self.native.open(*active)
        self.workers.map(self._prepare, _blocks(active))
        if known is not None:
            self.native.know(*active, known)
        own = threading.local()  # each thread has its own native worker

        def work(block: Bounds) -> None:
            if not hasattr(own, "worker"):
                own.worker = _native.JoinWorker(self.native)
            own.worker.open(*block)
            for span, both in spans_of(block):
                for (begin, end), part in zip(self.prepared.slices, self.packed, strict=True):
                    low, high = max(begin, span[0]), min(end, span[1])
                    if low < high:
                        self.workers.check()
                        groups = ((low - begin) // part.group, -(-(high - begin) // part.group))
                        own.worker.screen(part, *groups, both, self.prepared.look is not None)
                        self.bar.add((block[1] - block[0]) * (high - low) * (1 + both))

        self.workers.map(work, blocks)

    def _prepare(self, block: Bounds) -> None:
        self.workers.check()
        slices, begin = self.prepared.slices, block[0]
        at = bisect.bisect_right([bounds[0] for bounds in slices], begin) - 1
        while begin < block[1]:
            end = min(block[1], slices[at][1])
            self.native.prepare(begin, end, self.packed[at])
            at, begin = at + 1, end

    def _finish(self, blocks: list[Bounds], found: Neighbors, status: Status, first: int, met: Bounds) -> int:
        """Write the neighbours of the rows in `blocks`, which have been compared with the points in the range `met`."""

        def close(block: Bounds) -> int:
            self.workers.check()
            low = max(block[0], first)
            if low >= block[1]:
                return 0
            part = slice(low - first, block[1] - first)
            lists = found.distances[part], found.indices[part]
            refined: int = self.native.finish(low, block[1], *lists, status[part], *met)
            return refined

        return sum(self.workers.map(close, blocks))


def _blocks(rows: Bounds) -> list[Bounds]:
    return [(begin, min(begin + JOIN_BLOCK, rows[1])) for begin in range(*rows, JOIN_BLOCK)]
