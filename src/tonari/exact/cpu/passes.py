"""The passes of a search over the points: threads compare blocks of queries with slices of packed points.

If all points stay packed, each thread compares one block at a time with all of them. If points are packed slice by
slice, or if there are fewer blocks than threads, several blocks share a pass.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import current, decided
from tonari.exact import tuning
from tonari.exact.cpu.blocks import AnyBlock, Block, batches, cut_blocks
from tonari.exact.cpu.boxed import Boxed
from tonari.exact.cpu.join import Bounds, Join, join_of
from tonari.exact.cpu.rows.clusters import Near
from tonari.exact.cpu.rows.contraction import look_pays
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.plan import ExactPlan
from tonari.exact.report import Report

Some: TypeAlias = slice | npt.NDArray[np.intp]
Task: TypeAlias = tuple[Some, int, bool]  # rows to search, the index of a precision, and whether thresholds are sampled


_RETRY, _RESAMPLE = 1, 2  # values of RowStatus in native/exact/row_states.hpp, where 0 is a finished row


@dataclass
class Search:
    """The state that all passes of one search share."""

    prepared: PreparedPoints
    plan: ExactPlan
    workers: Workers
    bar: Progress
    report: Report
    # The name of a kernel, and the slices packed for it; this search keeps them even if another one repacks the points.
    held: tuple[str, list[_native.PackedPoints]] = field(default_factory=lambda: ("", []))
    near: Near | None = None  # for each query, the packed position of a nearby point; None if points are not clustered
    looks: bool = True  # False once comparing contracted rows before the screen has cost more time than it saves

    @property
    def levels(self) -> int:
        """The number of attempts at a row: one per precision, and one in all columns if rows are contracted."""
        return len(self.plan.precisions) + self.prepared.falls_back

    def hold(self, level: int, count: int) -> None:
        """Keep exactly the first `count` points packed for the precision with index `level`."""
        kernel = self.plan.kernels[self.plan.precisions[level]]
        self.held = "", []  # release slices before packing new ones
        self.held = kernel, self.prepared.hold(kernel, count, self.workers)

    def resident(self, kernel: str) -> list[_native.PackedPoints]:
        """Return the slices of points that are packed for `kernel`: the first ones, or all."""
        return self.held[1] if kernel == self.held[0] else []

    def holds(self, level: int) -> bool:
        """Whether all points are already packed for the precision with index `level`."""
        return len(self.resident(self.plan.kernels[self.plan.precisions[level]])) == len(self.prepared.slices)

    def unfinished(self, rows: slice | npt.NDArray[np.intp], status: npt.NDArray[np.uint8], level: int) -> list[Task]:
        """Return tasks for unfinished rows: to search them again without a sample, or at the next precision.

        A task copies its rows. If points are packed during the search, a task is therefore limited to the number of
        rows that share one pass over the points.
        """
        if not status.any():
            return []
        size = self.plan.blocks_at_once * self.plan.query_block
        tasks: list[Task] = []
        for end, at, sampled in ((_RESAMPLE, level, False), (_RETRY, level + 1, False)):
            left = np.flatnonzero(status == end)
            left = left + rows.start if isinstance(rows, slice) else rows[left]
            tasks += [(left[first : first + size], at, sampled) for first in range(0, len(left), size)]
        return tasks

    def rows(
        self,
        queries: npt.NDArray[Any],
        self_ids: npt.NDArray[np.int64] | None,
        found: Neighbors,
        *,
        level: int,
        sampled: bool,
        may_retry: bool = True,
        near: Near | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Search all rows of `queries` at one precision, write certified rows, and return the status of each row.

        Without `may_retry`, rows that cannot be certified are resolved with exact values. `near` has, for each query,
        the packed position of a nearby point.
        """
        plan, started = self.plan, time.perf_counter()
        kernel = plan.kernels[plan.precisions[level]]
        status = np.empty(len(queries), np.uint8)

        def new_block() -> _native.RowBlock:
            return _native.RowBlock(
                kernel,
                self.prepared.form,
                queries,
                self.prepared.points,
                plan.k,
                plan.isa,
                self_ids,
                found.distances.dtype == np.float64,
                may_retry and level + 1 < self.levels,
                plan.capacity,
                plan.sample_rank if sampled else 0,
                self.prepared.look,
                self.prepared.order,
                self.prepared.sketch,
                self.prepared.boxes is None,  # the order of boxes was checked when they were made or restored
            )

        def close_block(bounds: Bounds, block: _native.RowBlock) -> int:
            part = slice(*bounds)
            return block.finish(found.distances[part], found.indices[part], status[part])

        def compare(bounds: Bounds) -> int:
            blocks = cut_blocks(*bounds, plan.query_block)
            return self.through(blocks, kernel, new_block, close_block, sampled, near)

        boxes, packed = self.prepared.boxes, self.resident(kernel)
        if boxes is not None and len(queries) <= tuning.BOXED_QUERIES and len(packed) == len(self.prepared.slices):
            boxed = Boxed(boxes, packed, self.workers, plan.isa)
            refined = boxed.search(queries, new_block, close_block, compare)
        else:
            refined = compare((0, len(queries)))
        return self._count(status, level, refined, started, sampled=sampled, final=not may_retry)

    def through(
        self,
        blocks: list[Bounds],
        kernel: str,
        new_block: Callable[[], AnyBlock],
        close_block: Callable[[Bounds, AnyBlock], int],
        sampled: bool,
        near: Near | None = None,
    ) -> int:
        """Compare blocks of queries with all packed points; return the sum of the numbers that `close_block` returns.

        `close_block` is called for each block after its comparison with all points.
        """
        packed = self.resident(kernel)
        if len(packed) < len(self.prepared.slices) or self.plan.point_splits > 1:
            return self._stream(blocks, kernel, packed, new_block, close_block, sampled, near)
        own = threading.local()  # each thread has one block, reopened for each task

        def work(bounds: Bounds) -> int:
            if not hasattr(own, "block"):
                own.block = new_block()
            own.block.open(*bounds, *(near or ()))
            self._screen(own.block, kernel, bounds, packed, sampled)
            return close_block(bounds, own.block)

        return sum(self.workers.map(work, blocks))

    def _count(
        self,
        status: npt.NDArray[np.uint8],
        level: int,
        refined: int,
        started: float,
        *,
        sampled: bool = False,
        final: bool = False,
    ) -> npt.NDArray[np.uint8]:
        left = int(np.count_nonzero(status))  # the number of unfinished rows, usually 0
        precision, proved, seconds = self.plan.precisions[level], len(status) - left, time.perf_counter() - started
        self.report.refined += refined
        self.report.resampled += int(np.count_nonzero(status == _RESAMPLE)) if left else 0
        self.report.certify(precision, proved, seconds)
        record = current.get()
        if record is not None:
            name = precision if self.plan.form_dim == self.plan.d else f"{precision} in {self.plan.form_dim} columns"
            name += " without a sample" if self.plan.sample_rank and not sampled else ""
            name += ", then exact values" if final else ""
            record.tried(name, len(status), proved, seconds)
        return status

    def join(
        self, self_ids: npt.NDArray[np.int64], found: Neighbors, *, level: int, first: int
    ) -> npt.NDArray[np.uint8]:
        """Find the neighbours, among all points, of row `first` and all later rows; see :meth:`Join.all_points`."""
        started = time.perf_counter()
        status = np.empty(len(self.prepared.points) - first, np.uint8)
        refined = self._join(level, self_ids, found).all_points(found, status, first)
        return self._count(status, level, refined, started)

    def across(
        self, found: Neighbors, *, level: int, boundary: int, known: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.uint8]:
        """Find, for each point, its neighbours on the other side of a boundary; see :meth:`Join.across`."""
        n, started = len(self.prepared.points), time.perf_counter()
        status = np.empty(n, np.uint8)
        refined = self._join(level, np.arange(n), found).across(found, status, boundary, known)
        return self._count(status, level, refined, started)

    def _join(self, level: int, self_ids: npt.NDArray[np.int64], found: Neighbors) -> Join:
        kernel = self.plan.kernels[self.plan.precisions[level]]
        may_retry = level + 1 < self.levels
        double = found.distances.dtype == np.float64
        return Join(
            *(self.prepared, self.plan, self.workers, self.bar, self.resident(kernel)),
            join_of(self.prepared, self.plan, kernel, self_ids, double=double, may_retry=may_retry),
        )

    def _screen(
        self,
        block: Block,
        kernel: str,
        bounds: Bounds,
        packed: list[_native.PackedPoints],
        sampled: bool,
    ) -> None:
        stride = self.stride(sampled)
        if stride:
            for part in packed:
                self.workers.check()
                block.screen(part, 0, part.groups, stride, True, False)
        if sampled:
            block.end_sample()
        for part in packed:
            self.workers.check()
            block.screen(part, 0, part.groups, stride, False, self.looks_at(part))
            self.bar.add((bounds[1] - bounds[0]) * part.count)
        self.judge(kernel, block.looked)

    def stride(self, sampled: bool) -> int:
        """The stride of the groups of points that are compared first; 0 for none.

        Near points are adjacent in the order of boxes. A query that is compared with distant points first would keep
        too many of them.
        """
        if sampled:
            return self.plan.sample_stride
        return 0 if self.prepared.boxes is None else tuning.BOXED_STRIDE

    def looks_at(self, part: _native.PackedPoints) -> bool:
        """Whether a look, a comparison of contracted rows, precedes the screen of these packed points."""
        return self.looks and part.looks

    def judge(self, kernel: str, looked: tuple[int, int, int]) -> None:
        """Stop comparing contracted rows before the screen if the counts `looked` show that it costs too much time."""
        look = self.prepared.look
        if self.looks and look is not None and looked[0]:
            self.looks = look_pays(self.plan, kernel.split("/")[1], look.columns, looked)
            if not self.looks:
                share = f"{looked[2] / looked[0]:.0%} of tiles and groups"
                decided("look", f"left out from here on: {look.columns} columns leave {share} to be screened")

    def _stream(
        self,
        blocks: list[Bounds],
        kernel: str,
        packed: list[_native.PackedPoints],
        new_block: Callable[[], AnyBlock],
        close_block: Callable[[Bounds, AnyBlock], int],
        sampled: bool,
        near: Near | None,
    ) -> int:
        """Compare a few blocks at once with all points: first the points that stay packed, then the others.

        If there are fewer blocks than threads, several blocks have the same queries: each screens a share of the
        points, and their survivors are merged at the end.
        """
        plan, splits = self.plan, self.plan.point_splits
        packs = len(packed) < len(self.prepared.slices)
        at_once = min(plan.blocks_at_once if packs else max(1, plan.threads // splits), len(blocks))
        opened = [[new_block() for _ in range(splits)] for _ in range(at_once)]
        refined = 0
        for batch in batches(blocks, at_once):
            tasks = list(zip(batch, opened, strict=False))
            for bounds, parts in tasks:
                for block in parts:
                    block.open(*bounds, *(near or ()))
            stride = self.stride(sampled)
            for stage in (True, False) if stride else (False,):
                for some in self._all_points(kernel, packed):
                    self._pass_over(tasks, some, stride, stage)
                    del some  # free the compared slices before the next ones are packed
                if stage and sampled:
                    for _, parts in tasks:
                        parts[0].end_sample()
            refined += sum(self.workers.map(lambda task: _close(task, close_block), tasks))
        return refined

    def _all_points(self, kernel: str, packed: list[_native.PackedPoints]) -> Iterator[list[_native.PackedPoints]]:
        """Yield all points in packed slices: first the slices in memory, then others, packed when needed."""
        if packed:
            yield packed
        slices, size = self.prepared.slices[len(packed) :], self.plan.stream_chunk
        pieces = [(a, min(a + size, end)) for begin, end in slices for a in range(begin, end, size)]
        for some in batches(pieces, self.plan.threads):
            yield self.prepared.pack(kernel, some, self.workers, looks=False)

    def _pass_over(
        self,
        tasks: Sequence[tuple[Bounds, Sequence[Block]]],
        packed: list[_native.PackedPoints],
        stride: int,
        take_sample: bool,
    ) -> None:
        def work(task: tuple[Bounds, Block, list[_native.PackedPoints]]) -> None:
            (begin, end), block, share = task
            for part in share:
                self.workers.check()
                block.screen(part, 0, part.groups, stride, take_sample, not take_sample and self.looks_at(part))
                if not take_sample:
                    self.bar.add((end - begin) * part.count)

        self.workers.map(
            work,
            [(bounds, block, packed[at :: len(parts)]) for bounds, parts in tasks for at, block in enumerate(parts)],
        )


def _close(task: tuple[Bounds, list[AnyBlock]], close_block: Callable[[Bounds, AnyBlock], int]) -> int:
    """Merge the blocks of the same queries into the first one, and finish it by `close_block`."""
    bounds, (first, *others) = task
    for other in others:
        first.absorb(other)
    return close_block(bounds, first)
