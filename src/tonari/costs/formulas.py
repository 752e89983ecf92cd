"""Formulas for the cost of brute force, a k-d tree and NN-Descent in seconds; their constants are in rates.py."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from tonari.core.units import MIB
from tonari.costs import tuning

# bytes of a core's own cache, and bytes of the shared cache that two cores may use
_OWN_CACHE, _SHARED_CACHE = MIB, 16 * MIB


TOP_LEVELS = 8  # levels of a tree that all cores split together, at most: the id of a row's node then fits in a byte


class MeanVisits(NamedTuple):
    """The mean visits of one query in a tree: the counts of leaves, of nodes, and of points.

    Attributes
    ----------
    leaves, nodes : float
        The number of leaves whose points are compared with the query, and the number of nodes whose children's boxes
        are compared with it.
    points : float
        The number of points in these leaves.
    """

    leaves: float
    nodes: float
    points: float


class BitCosts(NamedTuple):
    """Costs of comparing rows of bits, in seconds of one core or device.

    Attributes
    ----------
    byte : float
        Packing the points, per byte of a point.
    pair, pair_byte : float
        Comparing, per pair of a query and a point, and per byte of a row in a pair.
    """

    byte: float
    pair: float
    pair_byte: float


@dataclass(frozen=True)
class BruteCosts:
    """Costs of brute force, in seconds of one core or device unless stated otherwise.

    Attributes
    ----------
    start : float
        Fixed cost of a search.
    point, point_value : float
        Packing the points, per point and per value of a point.
    query, query_neighbour, neighbour_value : float
        Answering, per query, per neighbour of a query, and per value of such a neighbour.
    pair, pair_value : float
        Per pair of a query and a point, and per dimension of a pair.
    crowd : float
        Extra cost per pair of the first 1,000 queries, divided by d². It applies only to fewer than 4 dimensions, where
        the first queries take longer than later ones.
    coarse : float
        The points are packed again, at the next precision level, if the k nearest of n uniform points in a cube would
        lie within less than this share of the cube's width.
    blurred : float
        Relative extra cost of a pair, multiplied by (n / k)^(3 / d) and limited to 100. With many points in few
        dimensions, squared distances of near points are smaller than the errors of the screen.
    """

    start: float
    point: float
    query: float
    query_neighbour: float
    pair: float
    pair_value: float
    point_value: float = 0.0
    neighbour_value: float = 0.0
    crowd: float = 0.0
    coarse: float = 0.0
    blurred: float = 0.0

    def seconds(self, n: int, m: int, d: int, k: int, workers: int) -> float:
        """Return the cost of the whole search on `workers` cores or devices."""
        return self.start + (self.packing(n, d) + self.answering(n, m, d, k)) / workers

    def packing(self, n: int, d: int) -> float:
        """Return the cost of packing the points on one core or device."""
        return n * (self.point + self.point_value * d)

    def answering(self, n: int, m: int, d: int, k: int) -> float:
        """Return the cost of answering the queries on one core or device."""
        extra = min(tuning.MOST_BLURRED, self.blurred * math.pow(n / k, 3 / d))
        pair = (self.pair + self.pair_value * d) * (1 + extra)
        queries = m * (self.query + (self.query_neighbour + self.neighbour_value * d) * k) + m * n * pair
        crowd = min(m, tuning.CROWDED_QUERIES) * n * self.crowd / d**2 if d < 4 else 0.0
        again = self.packing(n, d) if math.pow(k / n, 1 / d) < self.coarse else 0.0
        return queries + crowd + again


@dataclass(frozen=True)
class DirectCosts:
    """Costs of a search that computes the exact values of all pairs, in seconds of one core.

    Attributes
    ----------
    start, query, pair, value : float
        Per search, per query, per pair and per value of a pair.
    kept : float
        Per point that is among the k nearest so far when it is compared.
    neighbour, neighbour_value : float
        Per neighbour, and per value of a neighbour.
    columns : int
        The number of columns that are processed at once: narrower rows take as long as rows of this many columns.
    """

    start: float
    query: float
    pair: float
    value: float
    kept: float = 0.0
    neighbour: float = 0.0
    neighbour_value: float = 0.0
    columns: int = 1

    def slower(self, factor: float) -> DirectCosts:
        """Return the costs on cores that take `factor` times as long."""
        seconds = {name: factor * value for name, value in vars(self).items() if name != "columns"}
        return replace(self, **seconds)

    def seconds(self, n: int, m: int, d: int, k: int) -> float:
        """Return the cost of a search on one core."""
        # The j-th point of a random order is among the k nearest of the first j with probability k / j.
        insertions = k * (1 + math.log(n / k))
        pairs = n * (self.pair + self.value * max(d, self.columns))
        each = pairs + insertions * self.kept + k * (self.neighbour + self.neighbour_value * d)
        return self.start + m * (self.query + each)


@dataclass(frozen=True)
class TreeCosts:
    """Costs of a k-d tree, in seconds of one core or device unless stated otherwise.

    Attributes
    ----------
    start : float
        Fixed cost of a build.
    split, placed : float
        Costs of the build: per point and level, and per value of a point.
    query : float
        Per query.
    neighbour, neighbour_value : float
        Per neighbour of a query, multiplied by log2(k + 1) because neighbours are kept in order; and per dimension of a
        neighbour.
    ordered : float
        The length up to which lists are kept in order; in longer lists, the cost of a neighbour does not grow.
    leaf, node, node_value : float
        Per visited leaf, per visited node, and per dimension of a visited node.
    point, value : float
        Per compared point, and per dimension of it.
    near, far : float
        Per byte read from the shared cache, and the extra cost per byte read from memory.
    miss : float
        Extra cost per visited leaf that is read from memory.
    double : float
        Factor, not seconds, on the costs of a tree of float64 values.
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
    miss: float
    double: float
    ordered: float = math.inf

    def slower_search(self, factor: float) -> TreeCosts:
        """Return the costs on cores that need `factor` times as long for a search, but equally long for a build."""
        same = ("start", "split", "placed", "far", "miss", "double", "ordered")
        return replace(self, **{name: factor * value for name, value in vars(self).items() if name not in same})

    def build(self, n: int, d: int, height: int, workers: int) -> float:
        """Return the cost of building a tree on `workers` cores; on CUDA, each device builds a tree of its own.

        On the CPU, a node of at most TASK_POINTS points is built by one core, while all cores share the work on larger
        nodes.
        """
        top = min(height, TOP_LEVELS, max(0, math.ceil(math.log2(n / tuning.TASK_POINTS)))) if workers > 1 else 0
        passes = self.split * top / (workers if n >= tuning.SHARED_ROWS else 1)
        return self.start + n * (passes + (self.split * (height - top) + self.placed * d) / min(workers, 1 << top))

    def search(self, m: int, d: int, k: int, seen: MeanVisits, workers: int, *, double: bool, tree_bytes: int) -> float:
        """Return the cost of all queries on `workers` cores or devices."""
        walk = seen.nodes * (self.node + self.node_value * d)
        scan = seen.leaves * self.leaf + seen.points * (self.point + self.value * d)
        keep = k * math.log2(min(k, self.ordered) + 1) * (self.neighbour + self.neighbour_value * d)
        read = seen.points * d * (8 if double else 4)
        # If queries read few points, most of them are still in the core's own cache from the previous query.
        moved = read * read / (read + _OWN_CACHE)
        shared = min(1.0, max(0.0, (tree_bytes - _OWN_CACHE) / (8 * _OWN_CACHE)))
        beyond = max(0.0, 1.0 - _SHARED_CACHE / tree_bytes)
        wait = moved * (self.near * shared + self.far * beyond) + seen.leaves * self.miss * beyond
        return m * (self.query + (self.double if double else 1.0) * (walk + scan + keep) + wait) / workers


@dataclass(frozen=True)
class DescentCosts:
    """Costs of NN-Descent, in seconds of one core or device.

    Attributes
    ----------
    start : float
        Fixed cost of a graph.
    point, value : float
        Per point, and per value of a point; both are multiplied by log2(n + 1) and by the length of the point's list.
    """

    start: float
    point: float
    value: float

    def seconds(self, n: int, d: int, list_size: int, workers: int) -> float:
        """Return the cost of the whole graph on `workers` cores or devices."""
        return self.start + n * math.log2(n + 1) * (self.point + self.value * d) * list_size / workers
