"""The schedule of radius searches on the CPU: thresholds are constant, and lists have different lengths.

A pair is within the radius if its returned value is at most the limit. The screen bounds the score of each point from
below and above. A lower bound above the limit's score rules the point out. An upper bound below the limit's score
proves that the point is inside, which is enough for a count. The exact values of all other points are computed
(native/exact/radius_block.hpp). Every row is therefore finished at the first precision; a pilot estimates whether a
higher precision would be faster.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import index_dtype
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within
from tonari.core.trail import current, decided
from tonari.exact import tuning
from tonari.exact.cpu.blocks import cut_blocks
from tonari.exact.cpu.join import Bounds
from tonari.exact.cpu.passes import Search
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.cpu.search import arrange
from tonari.exact.plan import ExactPlan
from tonari.exact.report import Report

logger = logging.getLogger("tonari")


class Part(NamedTuple):
    """The result of a block of queries: the number of points found for each row, and the concatenated lists."""

    counts: npt.NDArray[np.int64]
    distances: npt.NDArray[Any]
    indices: npt.NDArray[Any]


@dataclass
class Parts:
    """The request and the answer of a radius search; the answer has a part for each block of queries."""

    of: Within
    lists: bool = True
    parts: dict[int, Part] = field(default_factory=dict)  # the key of a part is the row number of its first query

    def in_order(self) -> Iterator[Part]:
        """Yield the parts in the order of their rows, and drop each, so that its memory can be freed."""
        for begin in sorted(self.parts):
            yield self.parts.pop(begin)


def find_prepared(
    request: Within, prepared: PreparedPoints, plan: ExactPlan, progress: ProgressLike = None
) -> RadiusNeighbors:
    """Find all prepared points within each radius; see :meth:`tonari.core.method.SearchMethod.find_within`."""
    order, _ = arrange(request.queries, prepared, request.self_ids) or (None, None)
    answer = Parts(request if order is None else request.in_order(order))
    _run(answer, prepared, plan, progress)
    counts = [answer.parts[begin].counts for begin in sorted(answer.parts)]
    indptr = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    distances = np.empty(indptr[-1], request.limits.dtype)
    indices = np.empty(indptr[-1], index_dtype(len(prepared.points)))
    at = 0
    for part in answer.in_order():
        end = at + len(part.indices)
        distances[at:end], indices[at:end] = part.distances, part.indices
        at = end
    found = RadiusNeighbors(indptr, indices, distances)
    return found if order is None else _put_back(found, order)


def count_prepared(
    request: Within, prepared: PreparedPoints, plan: ExactPlan, progress: ProgressLike = None
) -> npt.NDArray[np.int64]:
    """Count, for each query, the points that :func:`find_prepared` finds."""
    order, _ = arrange(request.queries, prepared, request.self_ids) or (None, None)
    answer = Parts(request if order is None else request.in_order(order), lists=False)
    _run(answer, prepared, plan, progress)
    counts = np.concatenate([part.counts for part in answer.in_order()])
    if order is not None:
        counts[order] = counts.copy()
    return counts


def _put_back(found: RadiusNeighbors, order: npt.NDArray[np.int64]) -> RadiusNeighbors:
    """Put the lists into the original order of the queries, which were searched in the order `order`."""
    counts = np.empty(len(order), np.int64)
    begins = np.empty(len(order), np.int64)
    counts[order], begins[order] = np.diff(found.indptr), found.indptr[:-1]
    indptr = np.concatenate([np.zeros(1, np.int64), counts]).cumsum()
    places = np.repeat(begins - indptr[:-1], counts) + np.arange(indptr[-1])
    return RadiusNeighbors(indptr, found.indices[places], found.distances[places])


def _run(answer: Parts, prepared: PreparedPoints, plan: ExactPlan, progress: ProgressLike) -> None:
    """Search all queries of a request, and store the parts of the answer."""
    started = time.perf_counter()
    whole_plan, plan = plan, prepared.planned(plan)
    m, n = len(answer.of.queries), len(prepared.points)
    report = Report(rows=m)
    seconds = plan.seconds - plan.prepare_seconds
    with Progress(progress, total=m * n, seconds=seconds, label="neighbours") as bar:
        search = Search(prepared, plan, Workers(plan.threads), bar, report)
        level = prepared.first_level(plan)
        search.hold(level, n if level else plan.resident_points)
        pilot = min(m, plan.query_block * plan.threads) if plan.adaptive or prepared.falls_back else 0
        if pilot:
            vain = _rows(answer, search, (0, pilot), level) / pilot
            whole = replace(whole_plan, may_contract=False)
            if prepared.falls_back and plan.prefers(whole, level, vain):
                decided("columns", f"all {whole.d}: {plan.form_dim} left {vain:.0f} exact values a row too many")
                prepared, plan, level = prepared.whole(), whole, 0
                search = Search(prepared, plan, search.workers, bar, report)
                search.hold(level, plan.resident_points)
            elif plan.adaptive and plan.prefers_finer(level, vain):
                level += 1
                decided(
                    "precision", f"{plan.precisions[level]}: coarser ones took {vain:.0f} exact values a row too many"
                )
                search.hold(level, n)
        if pilot < m:
            _rows(answer, search, (pilot, m), level)
    report.seconds = time.perf_counter() - started
    logger.info("%s", report)


def _rows(answer: Parts, search: Search, rows: Bounds, level: int) -> int:
    """Search a range of rows; return the number of exact values that a higher precision might have avoided."""
    plan, n, started = search.plan, len(search.prepared.points), time.perf_counter()
    precision = plan.precisions[level]
    todo, vain = cut_blocks(*rows, plan.query_block), 0
    while todo:
        full: list[tuple[Bounds, int]] = []
        refined, spared = _blocks(answer, search, todo, precision, full)
        search.report.refined += refined
        vain += spared
        todo = []
        for (begin, end), met in full:
            parts = int(tuning.SPARE_PARTS * n / max(1, met)) + 1
            todo += cut_blocks(begin, end, max(1, (end - begin) // max(2, parts)))
            search.bar.extend((end - begin) * n)
    count, seconds, record = rows[1] - rows[0], time.perf_counter() - started, current.get()
    search.report.certify(precision, count, seconds)
    if record is not None:
        record.tried(precision, count, count, seconds)
    return vain


def _blocks(
    answer: Parts, search: Search, blocks: list[Bounds], precision: str, full: list[tuple[Bounds, int]]
) -> tuple[int, int]:
    """Search some blocks. If a block overflows, append it to `full`, with the number of points compared until then.

    Return two counts: all exact values, and the ones that a higher precision might have avoided.
    """
    plan, prepared, request = search.plan, search.prepared, answer.of
    kernel, double = plan.kernels[precision], request.limits.dtype == np.float64
    farthest = np.ascontiguousarray(request.limits, np.float64)
    allowed = None if request.allowed is None else request.allowed.native
    found = [0]

    def new_block() -> _Block:
        return _Block(
            _native.RadiusBlock(
                *(kernel, prepared.form, request.queries, prepared.points, plan.isa, farthest, request.self_ids),
                *(request.later, answer.lists, double, plan.capacity * plan.query_block // 2),
                *(prepared.look, prepared.order, allowed),
            )
        )

    def close_block(bounds: Bounds, block: _Block) -> int:
        search.workers.check()
        native, counts = block.native, np.empty(bounds[1] - bounds[0], np.int64)
        vain = native.count(counts)
        if native.full:
            full.append((bounds, block.met))
            return vain
        size = native.found
        part = Part(counts, np.empty(size, request.limits.dtype), np.empty(size, index_dtype(len(prepared.points))))
        if answer.lists:
            native.write(part.distances, part.indices)
        answer.parts[bounds[0]] = part
        found[0] += size
        return vain

    vain = search.through(blocks, kernel, new_block, close_block, False)
    return vain + found[0], vain


class _Block:
    """Adapt a native block of a radius search to :class:`Search`. Such a block uses no sampled threshold."""

    def __init__(self, native: _native.RadiusBlock) -> None:
        self.native = native
        self.met = 0  # number of points compared before the block was full

    def open(self, begin: int, end: int, places: Any = None, asked: Any = None) -> None:
        self.native.open(begin, end)
        self.met = 0

    @property
    def looked(self) -> tuple[int, int, int]:
        return self.native.looked

    def screen(
        self,
        points: _native.PackedPoints,
        group_begin: int,
        group_end: int,
        stride: int,
        take_stride: bool,
        looks: bool,
    ) -> None:
        if take_stride:  # all groups are screened in the pass over the others
            return
        if self.native.screen(points, group_begin, group_end, looks):
            self.met += points.count

    def end_sample(self) -> None:
        raise AssertionError("thresholds are constant")

    def absorb(self, other: _Block) -> None:
        self.native.absorb(other.native)
        self.met += other.met
