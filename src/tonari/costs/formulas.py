"""What brute force, a k-d tree and NN-Descent cost, in seconds: the formulas; their constants are in rates.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from tonari.core.units import MIB

_CROWDED_QUERIES, _VERY_MANY = 1000, 400_000
_OWN_CACHE, _SHARED_CACHE = MIB, 24 * MIB  # of bytes


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
    query, query_neighbour, neighbour_value : float
        For each query, for each of its neighbours, and for each value of these.
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
    query: float
    query_neighbour: float
    pair: float
    pair_value: float
    point_value: float = 0.0
    again: float = 0.0
    neighbour_value: float = 0.0
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
        queries = m * (self.query + (self.query_neighbour + self.neighbour_value * d) * k) + m * n * pair
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

    def slower(self, factor: float) -> TreeCosts:
        """The same on cores that take so many times longer for everything."""
        return TreeCosts(**{name: factor * value for name, value in vars(self).items()} | {"double": self.double})

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
