"""The schedule of exact search on the CPU: the precision of each row, and the order of rows.

for precision in precisions:                  only rows that the previous one could not certify
    for block of queries (in parallel):       passes.py
        for slice of points:                  screen, compare, compact     (native, without the GIL)
        refine, order, write                  rows: done | to retry | to search again without a sample
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core.process.progress import Progress, ProgressLike
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import decided
from tonari.exact import tuning
from tonari.exact.cpu.passes import Search, Some, Task
from tonari.exact.cpu.rows.clusters import Near, Numbers
from tonari.exact.cpu.rows.prepared import PreparedPoints
from tonari.exact.plan import ExactPlan
from tonari.exact.report import Report

Rows: TypeAlias = Callable[[Some], npt.NDArray[Any]]

logger = logging.getLogger("tonari")


def search_prepared(
    queries: npt.NDArray[Any],
    prepared: PreparedPoints,
    plan: ExactPlan,
    *,
    self_ids: npt.NDArray[np.int64] | None = None,
    progress: ProgressLike = None,
) -> tuple[Neighbors, Report]:
    """Find the k nearest prepared points of every query, as planned; the queries have been checked.

    Returns
    -------
    Neighbors of shape (m, k), and the Report of the run.
    """
    started = time.perf_counter()
    whole_plan, plan = plan, prepared.planned(plan)
    m, n = len(queries), prepared.count
    found = Neighbors.empty(m, plan.k, len(prepared.points), queries.dtype, prepared.points.dtype)
    report = Report(rows=m)
    seconds = plan.seconds - plan.prepare_seconds
    with Progress(progress, total=m * n, seconds=seconds, label="neighbours") as bar:
        search = Search(prepared, plan, Workers(plan.threads), bar, report)
        arranged = arrange(queries, prepared, self_ids)
        if arranged is None:
            _search(search, lambda rows: queries[rows], self_ids, found, whole_plan)
        else:
            order, search.near = arranged
            part = Neighbors(np.empty_like(found.distances), np.empty_like(found.indices))
            own = None if self_ids is None else self_ids[order]
            _search(search, lambda rows: queries[order[rows]], own, part, whole_plan)
            found.distances[order], found.indices[order] = part
    report.seconds = time.perf_counter() - started
    logger.info("%s", report)
    return found, report


def arrange(
    queries: npt.NDArray[Any], prepared: PreparedPoints, self_ids: npt.NDArray[np.int64] | None
) -> tuple[Numbers, Near] | None:
    """Return the queries in the order of the points' clusters, and the packed position of a point near each query.

    Return None if points are packed in their original order, because the order of queries then makes no difference.
    """
    clusters = prepared.clusters
    if clusters is None:
        return None
    if prepared.kept is None and self_ids is not None and np.array_equal(self_ids, np.arange(prepared.count)):
        return clusters.order, clusters.of_points()
    near = clusters.near(queries)
    order = np.argsort(near.places, kind="stable")
    return order, near.of(order)


def _search(
    search: Search, queries: Rows, self_ids: npt.NDArray[np.int64] | None, found: Neighbors, whole_plan: ExactPlan
) -> None:
    """Search the queries in their order; `whole_plan` is for rows that contracted points cannot resolve."""
    prepared, plan, report, bar = search.prepared, search.plan, search.report, search.bar
    m, n = len(found.indices), prepared.count
    level, sampled = prepared.first_level(plan), plan.sample_rank > 0
    search.hold(level, n if level else plan.resident_points)
    pilot = min(m, plan.query_block * plan.threads) if plan.adaptive else 0
    todo: list[Task] = []
    if pilot:
        head = Neighbors(found.distances[:pilot], found.indices[:pilot])
        ids = None if self_ids is None else self_ids[:pilot]
        near = None if search.near is None else search.near.of(slice(0, pilot))
        status = search.rows(queries(slice(0, pilot)), ids, head, level=level, sampled=sampled, near=near)
        if plan.prefers_finer(level, report.refined / pilot):
            level += 1
            each = f"{report.refined / pilot:.0f} exact values a row among the first {pilot:,} rows"
            decided("precision", f"{plan.precisions[level]} after {plan.precisions[level - 1]} took {each}")
            search.hold(level, n)
            todo += search.unfinished(slice(0, pilot), status, level - 1)
        else:
            todo += search.unfinished(slice(0, pilot), status, level)
    if self_ids is not None and plan.active_rows and search.holds(level):
        rest = Neighbors(found.distances[pilot:], found.indices[pilot:])
        status = search.join(self_ids, rest, level=level, first=pilot)
        todo += search.unfinished(slice(pilot, m), status, level)
    elif pilot < m:
        todo.append((slice(pilot, m), level, sampled))
    while todo:
        rows, at, with_sample = todo.pop()
        # Views if `rows` is a slice, copies if it is an array.
        part = Neighbors(found.distances[rows], found.indices[rows])
        ids = None if self_ids is None else self_ids[rows]
        stays = False
        few = not isinstance(rows, slice) and len(rows) <= tuning.FEW_LEFT
        if at == len(plan.precisions) and not few:  # too many candidates of the contraction at every precision
            decided("columns", f"all {whole_plan.d} for rows that have too many candidates in {plan.form_dim}")
            again = replace(whole_plan, may_contract=False, active_rows=0)
            part, more = search_prepared(queries(rows), prepared.whole(), again, self_ids=ids, progress=False)
            found.distances[rows], found.indices[rows] = part
            report.include(more)
            continue
        if not isinstance(rows, slice):
            bar.extend(len(rows) * n)
            beyond = at == len(plan.precisions)
            stays = few and at > 0 and (beyond or (search.holds(at - 1) and not search.holds(at)))
        if stays:
            at -= 1
            decided("precision", f"{plan.precisions[at]} again for a few rows, by exact values of all candidates")
        block = np.ascontiguousarray(queries(rows))
        near = None if search.near is None else search.near.of(rows)
        status = search.rows(block, ids, part, level=at, sampled=with_sample, may_retry=not stays, near=near)
        if not isinstance(rows, slice):
            found.distances[rows], found.indices[rows] = part
        todo += search.unfinished(rows, status, at)
