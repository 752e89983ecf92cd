"""The plan of a graph by NN-Descent, on the CPU or on CUDA: one frozen record of every choice (planner.py makes it)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonari.core.plan import Override, Plan

OVERRIDES_ON_CUDA = {
    "list_size": Override("neighbours that a point holds while lists grow"),
    "start": Override("clusters, random or graph", "word"),
    "n_clusters": Override("clusters of the start"),
    "n_probe": Override("near clusters whose members a point is compared with"),
    "train_per_cluster": Override("points per cluster that k-means looks at"),
    "kmeans_iters": Override("iterations of k-means", least=0),
    "n_hubs": Override("neighbours that a point asks for theirs"),
    "reverse": Override("reverse neighbours that it asks", least=0),
    "neighbors_per_hub": Override("neighbours that each of them gives"),
    "width": Override("new points that a point meets in a round"),
    "light_rounds": Override("first rounds with half of these numbers", least=0),
    "rounds": Override("rounds, at most"),
    "sample": Override("rows whose recall is measured"),
    "block": Override("rows of one task"),
}
OVERRIDES = OVERRIDES_ON_CUDA | {"isa": Override("instruction set: generic, avx2, avx512 or amx", "word")}


@dataclass(frozen=True, kw_only=True)
class DescentPlan(Plan):
    """Every choice of one graph by NN-Descent.

    Attributes
    ----------
    n, m, d, k : int
        Points, the same again, dimensions, neighbours.
    dtype, metric, method : str
        method: "nn-descent".
    device : str
        "cpu" or "cuda".
    devices : tuple of str
        "cuda:0"; none on the CPU.
    isa : str
        Instruction set; "" on CUDA.
    recall : float
        Share of the true neighbours to be reached, with confidence, before the run stops.
    seed : int
        Of all that is drawn.
    list_size : int
        Neighbours that a point holds while lists grow: k or more.
    start : str
        "clusters": the nearest members of near clusters. "random". "graph": the neighbours in a graph that is given.
    n_clusters, n_probe, train_per_cluster, kmeans_iters : int
        Clusters, those whose members a point is compared with, points per cluster that the clusters are made of, and
        iterations of k-means.
    n_hubs, reverse, neighbors_per_hub, width : int
        In a round a point asks its first `n_hubs` neighbours, and at most `reverse` points that have it among theirs,
        for their first `neighbors_per_hub` neighbours; of those that it does not have it meets at most `width`.
    light_rounds, rounds : int
        First rounds, in which hubs, reverse and breadth are half of these numbers, which is enough for most lists; and
        rounds in all, at most.
    sample : int
        Rows whose recall is measured after each round.
    block : int
        Rows of one task.
    threads : int
        0 on CUDA.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory beyond the input: a copy of the points for products; points copied from host memory; lists and all that
        is temporary; the graph.
    seconds : float
        Rough expectation.
    """

    recall: float
    seed: int
    list_size: int
    start: str
    n_clusters: int
    n_probe: int
    train_per_cluster: int
    kmeans_iters: int
    n_hubs: int
    reverse: int
    neighbors_per_hub: int
    width: int
    light_rounds: int
    rounds: int
    sample: int
    block: int

    @property
    def light(self) -> DescentPlan:
        """The same with the numbers of light rounds."""
        hubs, reverse, breadth = (-(-number // 2) for number in (self.n_hubs, self.reverse, self.neighbors_per_hub))
        return dataclasses.replace(self, n_hubs=hubs, reverse=reverse, neighbors_per_hub=breadth)


def check_recall(recall: Any) -> float:
    """Refuse what no approximate graph can be asked for."""
    if isinstance(recall, bool) or not isinstance(recall, float | int | np.floating) or not 0 < recall < 1:
        raise ValueError(
            f"recall={recall!r}: expected a number between 0 and 1, both excluded; for all neighbours use "
            "method='exact'"
        )
    return float(recall)


def check_seed(seed: Any) -> int:
    """Refuse a seed that is no whole number of 32 bits."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}: expected a whole number from 0 to {2**32 - 1}")
    return int(seed)
