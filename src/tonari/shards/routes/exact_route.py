"""Compare every block of rows with every slab of points, and merge the lists of a block over all slabs.

The rows are queries or, for a graph, the points themselves: a block is then a slab, which is also compared with itself.
The lists equal the lists of a search or a graph in memory bit for bit, for any division into slabs: distances are
exact, and lists are ordered by (distance, row). On the CPU, the route "exact-pairs" compares every two slabs once, and
uses each distance for the rows of both.
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
from tonari.shards.routes import pair_rounds
from tonari.shards.routes.pair_rounds import SlabPair
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


def _graph(worker: Worker, shard: int, rows: Any) -> Neighbors:
    k = min(worker.job.k, len(rows) - 1)
    return worker.nearest(rows, rows, k, self_join=True) if k else empty_lists(worker, len(rows))


def _compare(worker: Worker, pair: SlabPair) -> Neighbors:
    known = np.concatenate([lists.distances[:, -1] for lists in pair.kept()]).astype(np.float64)
    return worker.across(pair.waiting.arrive(), len(pair.graphs[0].indices), known)


EXACT_PAIRS = Route(pair_rounds.steps(_graph, _compare, lambda *_: None), pair_rounds.stages)
