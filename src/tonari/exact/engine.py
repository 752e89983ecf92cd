"""The schedule of the exact engine: which block of queries meets which slice of points, on which thread.

    for precision in ladder:                      only rows that the one before could not certify
        for block of queries (in parallel):
            for slice of points:                  screen, compare, compact     (native, without the GIL)
            refine, order, write                  rows done | to climb | to search again without a sample
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import _native
from tonari.exact.prepared import PreparedPoints
from tonari.exact.report import Report
from tonari.planning import Plan
from tonari.pool import Workers
from tonari.progress import Progress, ProgressLike
from tonari.results import Neighbors, index_dtype

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
        status = search.rows(queries, self_ids, found, rung=0, sampled=plan.sample_rank > 0)
        for rung in range(len(plan.ladder)):
            for wanted, next_rung in ((_RESAMPLE, rung), (_CLIMB, rung + 1)):
                rows = np.flatnonzero(status == wanted)
                if len(rows) == 0:
                    continue
                bar.extend(len(rows) * n)
                ids = None if self_ids is None else self_ids[rows]
                again = Neighbors(*(np.empty((len(rows), plan.k), part.dtype) for part in found))
                status[rows] = search.rows(np.ascontiguousarray(queries[rows]), ids, again, rung=next_rung, sampled=False)
                found.distances[rows], found.indices[rows] = again
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

        def open_block(bounds: tuple[int, int]) -> _native.RowBlock:
            return _native.RowBlock(
                kernel,
                self.prepared.form,
                queries,
                *bounds,
                self.prepared.points,
                plan.k,
                plan.isa,
                self_ids,
                found.distances.dtype == np.float64,
                rung + 1 < len(plan.ladder),
                plan.capacity,
                plan.sample_rank if sampled else 0,
            )

        def close_block(bounds: tuple[int, int], block: _native.RowBlock) -> int:
            part = slice(*bounds)
            return block.finish(found.distances[part], found.indices[part], status[part])

        size = plan.query_block
        blocks = [(begin, min(begin + size, len(queries))) for begin in range(0, len(queries), size)]
        packed = self.prepared.resident(kernel)
        if packed is None:
            refined = self._stream(blocks, kernel, open_block, close_block, sampled)
        elif plan.point_splits > 1:
            refined = self._split(blocks, packed, open_block, close_block)
        else:

            def work(bounds: tuple[int, int]) -> int:
                block = open_block(bounds)
                self._screen(block, bounds, packed, sampled)
                return close_block(bounds, block)

            refined = sum(self.workers.map(work, blocks))
        self.report.refined += refined
        self.report.resampled += int(np.count_nonzero(status == _RESAMPLE))
        self.report.certify(precision, int(np.count_nonzero(status == _DONE)))
        return status

    def _screen(
        self,
        block: _native.RowBlock,
        bounds: tuple[int, int],
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
        self,
        blocks: list[tuple[int, int]],
        packed: list[_native.PackedPoints],
        open_block: Any,
        close_block: Any,
    ) -> int:
        """Few queries: every thread takes a share of the points, and the survivors are joined."""
        splits = self.plan.point_splits
        shares = [packed[at::splits] for at in range(splits)]
        opened = {(bounds, at): open_block(bounds) for bounds in blocks for at in range(splits)}

        def work(task: tuple[tuple[int, int], int]) -> None:
            self._screen(opened[task], task[0], shares[task[1]], False)

        self.workers.map(work, opened)
        refined = 0
        for bounds in blocks:
            block = opened[bounds, 0]
            for at in range(1, splits):
                block.absorb(opened[bounds, at])
            refined += close_block(bounds, block)
        return refined

    def _stream(
        self,
        blocks: list[tuple[int, int]],
        kernel: str,
        open_block: Any,
        close_block: Any,
        sampled: bool,
    ) -> int:
        """No packed copy at hand: pack a few slices, pass them over some blocks, forget them, go on."""
        threads = self.workers.threads
        refined = 0
        for batch in _batches(blocks, 4 * threads):
            opened = {bounds: open_block(bounds) for bounds in batch}
            for stage in ((True, False) if sampled else (False,)):
                for slices in _batches(self.prepared.slices, threads):
                    packed = self.prepared.pack(kernel, slices, self.workers)
                    stride = self.plan.sample_stride if sampled else 0

                    def work(bounds: tuple[int, int], packed: Any = packed, stage: bool = stage, opened: Any = opened, stride: int = stride) -> None:
                        for part in packed:
                            self.workers.check()
                            opened[bounds].screen(part, 0, part.groups, stride, stage)
                            if not stage:
                                self.bar.add((bounds[1] - bounds[0]) * part.count)

                    self.workers.map(work, batch)
                if stage:
                    for block in opened.values():
                        block.end_sample()
            refined += sum(self.workers.map(lambda bounds, opened=opened: close_block(bounds, opened[bounds]), batch))
        return refined


def _batches(items: list[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
