"""The merge route: build a graph of each shard, then merge every two shards once (GGM, wang2021, section 5).

sample           a sample of rows
truth-P          the true neighbours of the sample in range P of all rows
...              graphs of slabs, which are merged in pairs (pair_rounds.py)
recall           measured on the sample
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.draws import Purpose, derived_seed
from tonari.graph.building.merging import merge_lists
from tonari.graph.lists import Lists
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.metrics import get_metric
from tonari.metrics.recall import Recall
from tonari.shards.directory.workspace import Workspace
from tonari.shards.lists import in_host_memory
from tonari.shards.plan import ShardPlan
from tonari.shards.routes import pair_rounds
from tonari.shards.routes.pair_rounds import SlabPair
from tonari.shards.samples import RECALL, SAMPLE, TRUTH, recall_stage, sample_stage, truth_of, truth_stage
from tonari.shards.tasks import Route, Stage, Worker


def _graph(worker: Worker, shard: int, rows: Any) -> Neighbors:
    return worker.graph(rows, derived_seed(worker.job.seed, Purpose.SHARD, shard), worker.job.target)


def _merge(worker: Worker, pair: SlabPair) -> Neighbors:
    job, (first, _) = worker.job, pair.slabs
    rows = pair.waiting.arrive()
    size = first.stop - first.start
    a, b = (
        (Lists(found, job.metric, "nn-descent", seed=job.seed), part)
        for found, part in zip(pair.graphs, (rows[:size], rows[size:]), strict=True)
    )
    call = Call.of(
        {"points": rows}, Options(job.metric, "auto", worker.device, job.threads, worker.memory, worker.progress)
    )
    seed = derived_seed(job.seed, Purpose.SHARD_MERGE)
    known = {"measure": pair.known, "checked": True}
    return merge_lists(a, b, call, recall=job.target, seed=seed, update=job.update, **known).found


@dataclass(frozen=True)
class _Crossing:
    """Measures the share of the true neighbours across two slabs that their merge has found.

    The true neighbours of the sample among all rows are known. A true neighbour in the other slab is also a true
    neighbour within the two slabs, so no separate search is needed. A pair of slabs has only few such neighbours, and
    the whole graph is measured at the end, so a merge continues only if their share is below the target by more than a
    standard error.

    Attributes
    ----------
    rows : int64 array or tensor, on the device of the lists
        Sampled rows, by their positions among the rows of both slabs.
    others, values : arrays
        A true neighbour of each row in the other slab, and its distance.
    """

    rows: Any
    others: npt.NDArray[np.int64]
    values: npt.NDArray[Any]
    metric: str
    k: int
    target: float

    @classmethod
    def of(cls, worker: Worker, first: slice, second: slice) -> _Crossing:
        rows, truth = truth_of(worker)
        size, found = first.stop - first.start, []
        for here, there, at, to in ((first, second, 0, size), (second, first, size, 0)):
            sampled = slice(*np.searchsorted(rows, [here.start, here.stop]).tolist())
            indices = truth.indices[sampled]
            row, column = np.nonzero((indices >= there.start) & (indices < there.stop))
            places = rows[sampled][row] - here.start + at, indices[row, column] - there.start + to
            found.append((*places, truth.distances[sampled][row, column]))
        at, others, values = map(np.concatenate, zip(*found, strict=True))
        return cls(worker.place.there(at), others, values, worker.job.metric, worker.job.k, worker.job.target)

    def __call__(self, found: Neighbors) -> Recall:
        """Return the recall across the two slabs.

        It is the share of the true neighbours in the other slab that the lists contain, or that tie with a list's last
        entry. Both bounds of the returned recall are one standard error above this share.
        """
        share = high = 1.0
        if len(self.rows):
            listed = Neighbors(*(in_host_memory(part[self.rows]) for part in found))
            last = listed.distances[:, -1]
            full = last >= self.values if get_metric(self.metric).descending else last <= self.values
            share = float((full | (listed.indices == self.others[:, None]).any(axis=1)).mean())
            high = min(1.0, share + math.sqrt(self.target * (1 - self.target) / len(self.others)))
        return Recall(share, share, high, high, len(self.rows), self.k)


def _stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    yield sample_stage()
    yield truth_stage(files.n, plan)
    yield from pair_rounds.stages(files, plan)
    yield recall_stage(files.n, plan)


MERGES = Route(
    {"sample": SAMPLE, "truth": TRUTH, "recall": RECALL} | pair_rounds.steps(_graph, _merge, _Crossing.of), _stages
)
