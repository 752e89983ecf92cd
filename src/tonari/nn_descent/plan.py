"""The plan of an NN-Descent graph, on the CPU or on CUDA: a frozen record of every choice; planning/ makes it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonari.core.plan import Override, Plan
from tonari.nn_descent.updates import GNND

_SHARED = {
    "list_size": Override("neighbours kept per point while lists grow"),
    "start": Override("clusters, random or graph", "word"),
    "n_clusters": Override("clusters of the start"),
    "n_probe": Override("nearest clusters whose members a point is compared with"),
    "train_per_cluster": Override("points per cluster that k-means is trained on"),
    "kmeans_iters": Override("iterations of k-means", least=0),
    "n_hubs": Override("neighbours whose lists a point reads in a round"),
    "reverse": Override("reverse neighbours whose lists it reads", least=0),
    "neighbors_per_hub": Override("entries that it reads from each list"),
    "width": Override("new points that a point is compared with in a round"),
    "light_rounds": Override("initial rounds that use half of these numbers", least=0),
    "rounds": Override("maximum number of rounds"),
    "sample": Override("rows for which recall is measured"),
    "block": Override("rows per task"),
}
OVERRIDES = _SHARED | {"isa": Override("instruction set: generic, avx2, avx512, amx or neon", "word")}
OVERRIDES_ON_CUDA = _SHARED | {
    "update": Override("pull, or gnnd: the rounds of wang2021", "word"),
    "samples": Override("with update=gnnd, NEW and OLD neighbours of a point that meet in a round"),
}


@dataclass(frozen=True, kw_only=True)
class DescentPlan(Plan):
    """Every choice of one NN-Descent graph.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries (m = n), dimensions, neighbours.
    dtype, metric, method : str
        Names: the dtype of the points, the metric, and "nn-descent".
    device : str
        "cpu" or "cuda".
    devices : tuple of str
        Such as ("cuda:0",); empty on the CPU.
    isa : str
        Instruction set; "" on CUDA.
    recall : float
        The target recall: the run stops when the lower end of the confidence interval of its recall reaches it.
    seed : int
        Seed of every random choice.
    list_size : int
        Neighbours kept per point during the run; at least k.
    update : str
        The update of lists in a round. "pull": every point reads the lists of its neighbours and writes its own.
        "gnnd", on CUDA: the sampled neighbours of every point are compared with each other, and the results are
        inserted into their lists behind spinlocks (wang2021, section 4).
    start : str
        Initial lists. "clusters": the nearest members of near clusters; "random": random points; "graph": the
        neighbours in a given graph.
    n_clusters, n_probe, train_per_cluster, kmeans_iters : int
        Number of clusters; clusters whose members a point is compared with; k-means sample points per cluster; and
        k-means iterations.
    widens : bool
        Whether the run may choose another `n_probe`, by the true neighbours of the sampled rows.
    n_hubs, reverse, neighbors_per_hub, width : int
        In a round of "pull", the hubs of a point are its first `n_hubs` neighbours and at most `reverse` points that
        have it among their own. The point collects the first `neighbors_per_hub` neighbours of each hub, and is
        compared with at most `width` of them that are not in its list yet. 0 with "gnnd".
    samples : int
        The number p of wang2021: a round of "gnnd" samples the first p NEW and the first p OLD neighbours of a point,
        and up to as many points that sample it. 0 with "pull".
    light_rounds, rounds : int
        The number of initial rounds with half of `n_hubs`, `reverse` and `neighbors_per_hub`, which suffice for most
        lists (one more follows if the recall is nearly reached); and the largest number of rounds.
    sample : int
        Rows whose recall is measured after each round.
    block : int
        Rows per task.
    threads : int
        CPU threads; 0 on CUDA.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory beyond the input: points packed for matrix products; points copied from host memory; lists and temporary
        data; the graph.
    seconds : float
        Rough estimate.
    """

    recall: float
    seed: int
    update: str
    list_size: int
    start: str
    n_clusters: int
    n_probe: int
    widens: bool
    train_per_cluster: int
    kmeans_iters: int
    n_hubs: int
    reverse: int
    neighbors_per_hub: int
    width: int
    samples: int
    light_rounds: int
    rounds: int
    sample: int
    block: int

    @property
    def light(self) -> DescentPlan:
        """The plan of a light round, with half as many hubs, reverse neighbours and entries per hub."""
        hubs, reverse, breadth = (-(-number // 2) for number in (self.n_hubs, self.reverse, self.neighbors_per_hub))
        return dataclasses.replace(self, n_hubs=hubs, reverse=reverse, neighbors_per_hub=breadth)

    @property
    def wider(self) -> str:
        """A text for messages: the fields of the plan to enlarge for a higher recall, with their values."""
        if self.update == GNND:
            return f"list_size (now {self.list_size}), samples (now {self.samples})"
        return f"n_probe (now {self.n_probe}), n_hubs (now {self.n_hubs})"


def check_recall(recall: Any) -> float:
    """Return the recall as a float; raise ValueError unless it is a number between 0 and 1."""
    if isinstance(recall, bool) or not isinstance(recall, float | int | np.floating) or not 0 < recall < 1:
        raise ValueError(
            f"recall={recall!r}: expected a number between 0 and 1, both excluded; for all neighbours use "
            "method='exact'"
        )
    return float(recall)


def check_seed(seed: Any) -> int:
    """Return the seed as an int; raise ValueError unless it is an unsigned 32-bit integer."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r}: expected a whole number from 0 to {2**32 - 1}")
    return int(seed)
