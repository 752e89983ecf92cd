"""Compare every block of rows with every slab of points, and merge the lists of a block over all slabs.

The rows are queries or, for a graph, the points themselves: a block is then a slab, which is also compared with itself.
The lists equal the lists of a search or a graph in memory bit for bit, for any division into slabs: distances are
exact, and lists are ordered by (distance, row).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace
from tonari.shards.lists import empty_lists, in_range, merge_into, renumbered
from tonari.shards.loading import blocks
from tonari.shards.plan import ShardPlan
from tonari.shards.tasks import Route, Stage, Task, Worker, in_one_piece


def _read(worker: Worker, args: tuple[int, int]) -> Any:
    return worker.load_queries.range(*args)


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
            merge_into(worker, kept, everyone, renumbered(worker, found, numbers))

    others = cut(n, job.plan.rows)
    if job.queries is None:
        meet(own, queries, self_join=True)
        others.remove(own)
    for part, points in blocks(worker.load, others, ahead=worker.job.plan.reads_ahead):
        meet(part, points, self_join=False)
        del points
    return in_range(worker, args[0], kept)


def _write(worker: Worker, args: tuple[int, int], found: Neighbors) -> Done:
    return Done(rows=worker.job.files.write_rows(args[0], found, worker.threads))


def _stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    yield Stage(
        [
            Task(f"rows-{at:06}", "rows", (block.start, block.stop), (block.stop - block.start) * files.points)
            for at, block in enumerate(cut(files.n, plan.block))
        ]
    )


EXACT = Route({"rows": in_one_piece(_read, _compute, _write)}, _stages)
