"""The schedule of the exact engine: which block of queries meets which slice of points, on which thread.

for precision in ladder:                      only rows that the one before could not certify
    for block of queries (in parallel):
        for slice of points:                  screen, compare, compact     (native, without the GIL)
        refine, order, write                  rows done | to climb | to search again without a sample
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari import _native
from tonari.exact.prepared import PreparedPoints
from tonari.exact.report import Report
from tonari.planning import Plan
from tonari.pool import Workers
from tonari.progress import Progress, ProgressLike
from tonari.results import Neighbors, index_dtype

Bounds: TypeAlias = tuple[int, int]  # queries [begin, end)
NewBlock: TypeAlias = Callable[[], _native.RowBlock]
CloseBlock: TypeAlias = Callable[[Bounds, _native.RowBlock], int]

logger = logging.getLogger("tonari")

_DONE, _CLIMB, _RESAMPLE = 0, 1, 2  # RowStatus in native/row_block.hpp


def search_prepared(
    queries: npt.NDArray[Any],
    prepared: PreparedPoints,
    plan: Plan,
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    progress: ProgressLike = None,
) -> tuple[Neighbors, Report]:
    """Answer checked queries against prepared points as the plan says.

    Returns
    -------
    Neighbors of shape (m, k), and the Report of the run.
    """
    started = time.perf_counter()
    m, n = len(queries), len(prepared.points)
    double = np.float64 in (queries.dtype, prepared.points.dtype)
    found = Neighbors(
        np.empty((m, plan.k), np.float64 if double else np.float32), np.empty((m, plan.k), index_dtype(n))
    )
    report = Report(rows=m)
    with Progress(progress, total=m * n, seconds=plan.seconds, label="neighbours") as bar:
        search = _Search(prepared, plan, Workers(plan.threads), bar, report)
        rung, sampled = prepared.first_rung(plan), plan.sample_rank > 0
        pilot = plan.query_block * plan.threads if plan.adaptive else m
        todo: list[tuple[slice | npt.NDArray[np.intp], int, bool]] = [(slice(0, pilot), rung, sampled)]
        while todo:
            rows, at, with_sample = todo.pop()
            part = Neighbors(found.distances[rows], found.indices[rows])  # views for a slice, copies for a list
            ids = None if self_ids is None else self_ids[rows]
            status = search.rows(np.ascontiguousarray(queries[rows]), ids, part, rung=at, sampled=with_sample)
            if not isinstance(rows, slice):
                found.distances[rows], found.indices[rows] = part
                bar.extend(len(rows) * n)
            numbers = np.arange(m)[rows]
            for wanted, next_rung in ((_RESAMPLE, at), (_CLIMB, at + 1)):
                if np.any(status == wanted):
                    todo.append((numbers[status == wanted], next_rung, False))
            if pilot < m:
                if plan.prefers_finer(rung, report.refined / pilot):
                    rung += 1
                    prepared.keep(plan.kernel(plan.ladder[rung]), search.workers)
                todo.append((slice(pilot, m), rung, sampled))
                pilot = m
    report.seconds = time.perf_counter() - started
    logger.info("%s", report)
    return found, report


@dataclass
class _Search:
    """One run: what stays the same over its passes."""

    prepared: PreparedPoints
    plan: Plan
    workers: Workers
    bar: Progress
    report: Report

    def rows(
        self,
        queries: npt.NDArray[Any],
        self_ids: npt.NDArray[np.int64] | None,
        found: Neighbors,
        *,
        rung: int,
        sampled: bool,
    ) -> npt.NDArray[np.uint8]:
        """Search all rows of `queries` at one precision, write what is certified, and say how each row ended."""
        plan, precision = self.plan, self.plan.ladder[rung]
        kernel = plan.kernel(precision)
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
                rung + 1 < len(plan.ladder),
                plan.capacity,
                plan.sample_rank if sampled else 0,
            )

        def close_block(bounds: Bounds, block: _native.RowBlock) -> int:
            part = slice(*bounds)
            return block.finish(found.distances[part], found.indices[part], status[part])

        size = plan.query_block
        blocks = [(begin, min(begin + size, len(queries))) for begin in range(0, len(queries), size)]
        packed = self.prepared.resident(kernel)
        if packed is None:
            refined = self._stream(blocks, kernel, new_block, close_block, sampled)
        elif plan.point_splits > 1:
            refined = self._split(blocks, packed, new_block, close_block)
        else:
            own = threading.local()  # one block per thread, opened again and again

            def work(bounds: Bounds) -> int:
                if not hasattr(own, "block"):
                    own.block = new_block()
                own.block.open(*bounds)
                self._screen(own.block, bounds, packed, sampled)
                return close_block(bounds, own.block)

            refined = sum(self.workers.map(work, blocks))
        self.report.refined += refined
        self.report.resampled += int(np.count_nonzero(status == _RESAMPLE))
        self.report.certify(precision, int(np.count_nonzero(status == _DONE)))
        return status

    def _screen(
        self,
        block: _native.RowBlock,
        bounds: Bounds,
        packed: list[_native.PackedPoints],
        sampled: bool,
    ) -> None:
        stride = self.plan.sample_stride if sampled else 0
        if sampled:
            for part in packed:
                self.workers.check()
                block.screen(part, 0, part.groups, stride, True)
            block.end_sample()
        for part in packed:
            self.workers.check()
            block.screen(part, 0, part.groups, stride, False)
            self.bar.add((bounds[1] - bounds[0]) * part.count)

    def _split(
        self, blocks: list[Bounds], packed: list[_native.PackedPoints], new_block: NewBlock, close_block: CloseBlock
    ) -> int:
        """Few queries: every thread takes a share of the points, and the survivors are joined."""
        splits = self.plan.point_splits
        refined = 0
        opened = [new_block() for _ in range(splits)]
        for bounds in blocks:
            for block in opened:
                block.open(*bounds)

            def work(at: int, bounds: Bounds = bounds) -> None:
                self._screen(opened[at], bounds, packed[at::splits], False)

            self.workers.map(work, range(splits))
            for other in opened[1:]:
                opened[0].absorb(other)
            refined += close_block(bounds, opened[0])
        return refined

    def _stream(
        self, blocks: list[Bounds], kernel: str, new_block: NewBlock, close_block: CloseBlock, sampled: bool
    ) -> int:
        """No packed copy at hand: pack a few slices, pass them over some blocks, forget them, go on."""
        threads = self.workers.threads
        opened = [new_block() for _ in range(min(4 * threads, len(blocks)))]
        refined = 0
        for batch in _batches(blocks, len(opened)):
            tasks = list(zip(batch, opened, strict=False))
            for bounds, block in tasks:
                block.open(*bounds)
            for stage in (True, False) if sampled else (False,):
                for slices in _batches(self.prepared.slices, threads):
                    packed = self.prepared.pack(kernel, slices, self.workers)
                    self._pass_over(tasks, packed, self.plan.sample_stride if sampled else 0, stage)
                if stage:
                    for block in opened:
                        block.end_sample()
            refined += sum(self.workers.map(lambda task: close_block(*task), tasks))
        return refined

    def _pass_over(
        self,
        tasks: list[tuple[Bounds, _native.RowBlock]],
        packed: list[_native.PackedPoints],
        stride: int,
        take_sample: bool,
    ) -> None:
        def work(task: tuple[Bounds, _native.RowBlock]) -> None:
            (begin, end), block = task
            for part in packed:
                self.workers.check()
                block.screen(part, 0, part.groups, stride, take_sample)
                if not take_sample:
                    self.bar.add((end - begin) * part.count)

        self.workers.map(work, tasks)


def _batches(items: list[Bounds], size: int) -> Iterator[list[Bounds]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
