"""What a search costs by brute force, by a k-d tree and by NN-Descent, in seconds: constants, all in one place.

They decide between the methods (:mod:`tonari.methods.auto`), and what a plan expects. Only their ratios matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from tonari.core.plan import Plan
from tonari.core.units import MIB
from tonari.metrics import get_metric


class MeanVisits(NamedTuple):
    """What one query looks at in a tree, on average.

    Attributes
    ----------
    leaves, nodes : float
        Leaves scanned, and nodes whose children's boxes were compared.
    points : float
        Points in those leaves.
    """

    leaves: float
    nodes: float
    points: float


@dataclass(frozen=True)
class BruteCosts:
    """Seconds of one core, or of one device, for brute force.

    Attributes
    ----------
    start : float
        Once.
    point, point_value : float
        For each point to be packed, and for each of its values.
    again : float
        For each point, and a fifteenth of it for each value, where points are very many, as was seen there.
    query, query_neighbour : float
        For each query, and for each of its neighbours.
    pair, pair_value : float
        For each pair of a query and a point, and for each of its dimensions.
    crowd : float
        For each pair of the first queries, by the square of the dimensions, of which there are one to three: these
        queries were seen to take longer than those after them.
    coarse : float
        Dimensions at which a pair costs twice, and in fewer more by the fourth power: float16 tells points apart badly.
    """

    start: float
    point: float
    point_value: float
    again: float
    query: float
    query_neighbour: float
    pair: float
    pair_value: float
    crowd: float = 0.0
    coarse: float = 0.0

    def seconds(self, n: int, m: int, d: int, k: int, workers: int) -> float:
        """The whole search, on so many cores or devices."""
        return self.start + (self.packing(n, d) + self.answering(n, m, d, k)) / workers

    def packing(self, n: int, d: int) -> float:
        """What has to be done for the points, on one core or device."""
        return n * (self.point + self.point_value * d + self.again * (1 + d / 15) * n / (n + _VERY_MANY))

    def answering(self, n: int, m: int, d: int, k: int) -> float:
        """And for the queries."""
        pair = (self.pair + self.pair_value * d) * (1 + (self.coarse / d) ** 4)
        queries = m * (self.query + self.query_neighbour * k) + m * n * pair
        crowd = min(m, _CROWDED_QUERIES) * n * self.crowd / d**2 if d < 4 else 0.0
        return queries + crowd


@dataclass(frozen=True)
class TreeCosts:
    """Seconds of one core, or of one device, for a tree.

    Attributes
    ----------
    start : float
        Once for a build.
    split, placed : float
        Of the build: for each point on each level, and for each value of a point.
    query : float
        For each query.
    neighbour, neighbour_value : float
        For each of its k neighbours, as often as they are about to be put in order, log2(k + 1) times, and for each
        dimension.
    leaf, node, node_value : float
        For each visit of a leaf and of a node, and for each dimension of the latter.
    point, value : float
        For each point that is compared, and for each of its dimensions.
    near, far : float
        For each byte that is looked at and comes from the cache that cores share, and so much more from beyond.
    double : float
        Factor where the tree holds float64.
    """

    start: float
    split: float
    placed: float
    query: float
    neighbour: float
    neighbour_value: float
    leaf: float
    node: float
    node_value: float
    point: float
    value: float
    near: float
    far: float
    double: float

    def build(self, n: int, d: int, height: int, workers: int) -> float:
        """The build, on so many cores; devices build a tree each."""
        return self.start + n * (self.split * height + self.placed * d) / workers

    def search(self, m: int, d: int, k: int, seen: MeanVisits, workers: int, *, double: bool, tree_bytes: int) -> float:
        """All queries, on so many cores or devices."""
        walk = seen.nodes * (self.node + self.node_value * d)
        scan = seen.leaves * self.leaf + seen.points * (self.point + self.value * d)
        keep = k * math.log2(k + 1) * (self.neighbour + self.neighbour_value * d)
        read = seen.points * d * (8 if double else 4)
        # Queries that follow each other share what is small enough to stay by the core.
        moved = read * read / (read + _OWN_CACHE)
        shared = min(1.0, max(0.0, (tree_bytes - _OWN_CACHE) / (8 * _OWN_CACHE)))
        beyond = max(0.0, 1.0 - _SHARED_CACHE / tree_bytes)
        wait = moved * (self.near * shared + self.far * beyond)
        return m * (self.query + (self.double if double else 1.0) * (walk + scan + keep) + wait) / workers


@dataclass(frozen=True)
class DescentCosts:
    """Seconds of one core, or of one device, for NN-Descent.

    Attributes
    ----------
    start : float
        Once.
    point, value : float
        For each point, and for each of its values, times log2(n) and the length of its list.
    """

    start: float
    point: float
    value: float

    def seconds(self, n: int, d: int, list_size: int, workers: int) -> float:
        """The whole graph, on so many cores or devices."""
        return self.start + n * math.log2(n + 1) * (self.point + self.value * d) * list_size / workers


_CROWDED_QUERIES, _VERY_MANY = 1000, 400_000
_SHARED = 1.4  # times as long takes brute force in few dimensions where a product serves both of its rows
_OWN_CACHE, _SHARED_CACHE = MIB, 24 * MIB  # of bytes
_READ_RATE = 1e10  # bytes per second that one core gets from memory

# By instruction set, or "cuda", and for brute force by the form of the metric (tonari.metrics). On the CPU fitted to
# the processor time of searches among PCA of SIFT, on two cores of an AMD EPYC of family 26 (its products in
# AVX2 and AVX-512 later to wall time, by hand); python -m benchmarks.kdtree_auto tells how good the choice is that
# follows. On CUDA fitted to an H100.
_BRUTE = {
    ("generic", "gemm"): BruteCosts(1e-3, 8.8e-8, 4.5e-9, 0.0, 3.8e-6, 2.2e-7, 4e-10, 5e-11),
    ("generic", "elementwise"): BruteCosts(8e-4, 5.1e-8, 6.7e-9, 0.0, 3.7e-6, 2e-7, 4.1e-10, 1.5e-10),
    ("avx2", "gemm"): BruteCosts(8e-4, 8.5e-8, 2.5e-9, 1.05e-7, 3.1e-6, 2.8e-7, 1.8e-10, 5.5e-12, crowd=1.5e-9),
    ("avx2", "elementwise"): BruteCosts(7e-4, 5.4e-8, 5.1e-9, 0.0, 3e-6, 2.2e-7, 6.7e-11, 3.5e-11),
    ("avx512", "gemm"): BruteCosts(8e-4, 7.8e-8, 1.3e-9, 1.2e-7, 2.7e-6, 2e-7, 1.5e-10, 3.6e-12, crowd=1.5e-9),
    ("avx512", "elementwise"): BruteCosts(7e-4, 5e-8, 5e-9, 0.0, 2.6e-6, 1.8e-7, 5.4e-11, 1.75e-11),
    ("cuda", "gemm"): BruteCosts(7e-4, 1e-10, 0.0, 0.0, 1e-8, 2e-9, 2.8e-13, 2.7e-15, coarse=5.5),
    ("cuda", "elementwise"): BruteCosts(7e-4, 1e-10, 0.0, 0.0, 1e-8, 2e-9, 3.2e-13, 5e-14),  # a guess
}
# Not measured: in few dimensions the survivors' work sets the pace, which is AVX-512's.
_BRUTE |= {("amx", form): _BRUTE["avx512", form] for form in ("gemm", "elementwise")}

_BUILD = {"start": 2e-4, "split": 9e-9, "placed": 3.5e-9}  # the same code for every instruction set
_TREE = {
    "generic": TreeCosts(
        **_BUILD,
        query=1e-7,
        neighbour=5e-9,
        neighbour_value=2.7e-9,
        leaf=5.5e-8,
        node=8.7e-8,
        node_value=1.2e-8,
        point=1e-10,
        value=2e-10,
        near=0.0,
        far=3.3e-11,
        double=1.6,
    ),
    "avx2": TreeCosts(
        **_BUILD,
        query=2.6e-7,
        neighbour=3.3e-9,
        neighbour_value=1.7e-9,
        leaf=4.4e-8,
        node=5.9e-8,
        node_value=1e-9,
        point=1e-10,
        value=2.5e-11,
        near=8e-12,
        far=3.3e-11,
        double=1.6,
    ),
    "avx512": TreeCosts(
        **_BUILD,
        query=4e-8,
        neighbour=1.9e-9,
        neighbour_value=2e-9,
        leaf=0.0,
        node=6.6e-8,
        node_value=2.1e-9,
        point=4.6e-10,
        value=2.2e-11,
        near=1.3e-11,
        far=3.3e-11,
        double=1.6,
    ),
    "cuda": TreeCosts(
        start=5e-3,
        split=6e-10,
        placed=1e-10,
        query=4e-10,
        neighbour=2.6e-11,
        neighbour_value=0.0,
        leaf=0.0,
        node=0.0,
        node_value=2.8e-11,
        point=0.0,
        value=4.4e-13,
        near=0.0,
        far=0.0,
        double=2.0,
    ),
}
# Rough: 1e6 points of 128 dimensions in 15 s on two cores, in 0.15 s on an H100.
_DESCENT = {"cpu": DescentCosts(2e-2, 3.6e-8, 1.1e-10), "cuda": DescentCosts(5e-3, 1.4e-10, 6.5e-13)}
_TREE["amx"] = _TREE["avx512"]  # a tree has no use for AMX


def brute_seconds(plan: Plan, m: int) -> float:
    """Brute force for m queries, otherwise as planned; with the packing of the points."""
    form = get_metric(plan.metric).form
    seconds = _BRUTE[plan.isa or "cuda", form].seconds(plan.n, m, plan.d, plan.k, plan.workers)
    return seconds * _SHARED if getattr(plan, "active_rows", 0) else seconds


def brute_work(isa: str, metric: str, n: int, m: int, d: int, k: int, *, read_bytes: int, prepared: bool) -> float:
    """What brute force on the CPU shares out among threads, in seconds of one.

    Parameters
    ----------
    isa, metric : str
    n, m, d, k : int
    read_bytes : int
        Of packed points, all queries together: few queries wait for these rather than for arithmetic.
    prepared : bool
        Whether the points are packed already.
    """
    costs = _BRUTE[isa, get_metric(metric).form]
    answering = max(costs.answering(n, m, d, k), read_bytes / _READ_RATE)
    return answering if prepared else answering + costs.packing(n, d)


def tree_work(isa: str, n: int, m: int, d: int, k: int, height: int, held_bytes: int, *, prepared: bool) -> float:
    """What a tree on the CPU shares out among threads, in seconds of one; values in it take `held_bytes`."""
    costs, seen = _TREE[isa], expected_visits(n, d, k, height)
    searching = costs.search(m, d, k, seen, 1, double=held_bytes == 8, tree_bytes=n * d * held_bytes)
    return searching if prepared else searching + costs.build(n, d, height, 1)


def build_seconds(plan: Any) -> float:
    """The build of a tree."""
    return _tree(plan).build(plan.n, plan.d, plan.height, max(1, plan.threads))


def tree_seconds(plan: Any, m: int, seen: MeanVisits) -> float:
    """The search of m queries that look at so much, in a tree that stands."""
    workers, double = plan.threads or len(plan.devices), plan.held == "float64"
    return _tree(plan).search(m, plan.d, plan.k, seen, workers, double=double, tree_bytes=plan.packed_bytes)


def expected_visits(n: int, d: int, k: int, height: int) -> MeanVisits:
    """What a query looks at among points that fill a cube evenly.

    A ball that holds k points, in cells that hold `leaf` points, touches ((k / leaf)^(1/d) + 1)^d of them (Friedman,
    Bentley and Finkel, An algorithm for finding best matches in logarithmic expected time, ACM TOMS 1977, section 4).
    """
    leaves = 1 << height
    size = n / leaves
    across = (k / size) ** (1.0 / d) + 1.0
    # The power of many dimensions is no float64, and far more than all leaves.
    touched = float(leaves) if d * math.log2(across) > height + 1 else min(float(leaves), across**d)
    return MeanVisits(touched, touched / 4 + height / 4, touched * size)


def _tree(plan: Plan) -> TreeCosts:
    return _TREE[plan.isa or "cuda"]


def least_build_seconds(plan: Plan) -> float:
    """What the build of any tree takes, where brute force is planned."""
    return _tree(plan).start


def descent_seconds(plan: Any) -> float:
    """The whole graph by NN-Descent."""
    return _DESCENT[plan.device].seconds(plan.n, plan.d, plan.list_size, max(1, plan.threads))
