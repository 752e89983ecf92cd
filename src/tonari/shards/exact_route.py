"""Every slab of rows meets every other: the lists of a slab's rows are merged over all slabs of points.

The lists have the bits of a graph that is built in memory: values are exact, and lists are ordered by (distance, row)
wherever they are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.slices import cut
from tonari.shards.common import blocks, empty_lists, merge_into, renumbered
from tonari.shards.plan import ShardPlan
from tonari.shards.tasks import Route, Stage, Step, Task, Worker
from tonari.shards.workspace import Done, Workspace


def _read(worker: Worker, args: tuple[int, int]) -> Any:
    return worker.load.range(*args)


def _compute(worker: Worker, args: tuple[int, int], queries: Any) -> Neighbors:
    job = worker.job
    n = job.source.n
    kept, everyone = empty_lists(worker, len(queries)), np.arange(len(queries))
    own = slice(*args)

    def meet(part: slice, points: Any, *, self_join: bool) -> None:
        k = min(job.k, len(points) - self_join)
        if k:
            found = worker.nearest(queries, points, k, self_join=self_join)
            numbers = np.arange(part.start, part.stop).astype(index_dtype(n))
            merge_into(worker, kept, everyone, renumbered(found, numbers))

    meet(own, queries, self_join=True)
    others = [part for part in cut(n, job.plan.rows) if part != own]
    for part, points in blocks(worker, others):
        meet(part, points, self_join=False)
    return kept


def _write(worker: Worker, args: tuple[int, int], found: Neighbors) -> Done:
    return Done(rows=worker.job.files.write_rows(args[0], found))


def _stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    n = files.n
    slabs = cut(n, plan.rows)
    yield Stage(
        [Task(f"rows-{at:06}", "rows", (s.start, s.stop), (s.stop - s.start) * n) for at, s in enumerate(slabs)]
    )


EXACT = Route({"rows": Step(_read, _compute, _write)}, _stages)
