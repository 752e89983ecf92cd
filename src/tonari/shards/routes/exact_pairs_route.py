"""The route "exact-pairs", on the CPU: compare every two slabs once, and use each distance for the rows of both.

The graph equals a graph built in memory bit for bit, for any division into slabs: distances are exact, and lists are
ordered by (distance, row).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.core.results.neighbors import Neighbors
from tonari.shards.lists import empty_lists
from tonari.shards.routes import pair_rounds
from tonari.shards.routes.pair_rounds import SlabPair
from tonari.shards.tasks import Route, Worker


def _graph(worker: Worker, shard: int, rows: Any) -> Neighbors:
    k = min(worker.job.k, len(rows) - 1)
    return worker.nearest(rows, rows, k, self_join=True) if k else empty_lists(worker, len(rows))


def _compare(worker: Worker, pair: SlabPair) -> Neighbors:
    known = np.concatenate([lists.distances[:, -1] for lists in pair.kept()]).astype(np.float64)
    return worker.across(pair.waiting.arrive(), len(pair.graphs[0].indices), known)


EXACT_PAIRS = Route(pair_rounds.steps(_graph, _compare, lambda *_: None), pair_rounds.stages)
