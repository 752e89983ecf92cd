"""A graph of each shard; then every two shards are merged once (GGM, wang2021, section 5).

truth-P          the true neighbours of a sample of rows, in a part of all rows
...              graphs of slabs that meet in pairs (pair_rounds.py)
recall           measured on the sample
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tonari.core.neighbors import Neighbors
from tonari.graph.lists import Lists
from tonari.graph.merging import merge_lists
from tonari.shards import pair_rounds
from tonari.shards.common import RECALL, TRUTH, recall_stage, truth_stage
from tonari.shards.plan import ShardPlan
from tonari.shards.tasks import Route, Stage, Worker
from tonari.shards.workspace import Workspace


def _graph(worker: Worker, shard: int, rows: Any) -> Neighbors:
    return worker.graph(rows, worker.job.seed + shard, worker.job.target)


def _merge(worker: Worker, rows: Any, graphs: list[Neighbors], kept: list[Neighbors]) -> Neighbors:
    job = worker.job
    size = len(graphs[0].indices)
    parts = rows[:size], rows[size:]
    sides = [
        (Lists(found, job.metric, "nn-descent", seed=job.seed), part) for found, part in zip(graphs, parts, strict=True)
    ]
    return merge_lists(
        *sides,
        recall=job.target,
        seed=job.seed,
        device=worker.device,
        threads=job.threads,
        memory=worker.memory,
        progress=worker.progress,
    ).found


def _stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    yield truth_stage(files.n, plan)
    yield from pair_rounds.stages(files, plan)
    yield recall_stage(plan)


MERGES = Route({"truth": TRUTH, "recall": RECALL} | pair_rounds.steps(_graph, _merge), _stages)
