"""Boruvka's rounds over lists of neighbours: every component takes its lightest edge, until a single component remains.

The weight of an edge is w_ij = max(core_i, core_j, d_ij), and edges have a total order, by (weight, smaller end, larger
end), so the minimum spanning tree is unique. Both ends are stored as one number, a "pair": smaller * n + larger. The
first edge E_C of a component C in this order belongs to the unique minimum spanning tree, so a component takes it once
it is known.

Each point i has a list of its nearest points outside of its component, in the order of (distance, number) of every
search. Its last entry has distance r_i and number l_i, and the core distance of i is at most r_i. So an unlisted j
outside of C has (d_ij, j) > (r_i, l_i) and w_ij >= d_ij >= r_i; if w_ij = r_i, then d_ij = r_i and j > l_i. Edges of i
with equal weights are in the order of their other ends, so each of these edges is after

    B_i = (r_i, min(i, l_i), max(i, l_i)).

Let E_C be the first of the listed edges that touch C, in the list of either end. If B_i >= E_C for all points i of C,
then E_C is the first edge of C. Points with B_i < E_C search again, for a number of neighbours that is the next power
of four. Lists stay valid when components grow: points that are now inside are dropped, and unlisted points outside are
still beyond B_i.

A round ends when half of the components know their edge; small components search first. The largest components, whose
points are far from all others, therefore rarely search, and there are at most log(n) / log(4/3) rounds. If the points
of a large component list only each other, their bounds B_i are raised without a search, by lower bounds of their
distances to other components (apart.py). The points with the smallest bounds then search first: their results usually
make further searches unnecessary.

Boruvka 1926; Campello, Moulavi and Sander 2013 (definition 3: mutual reachability); March, Ram and Gray 2010 (bounds
that stay valid in later rounds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.process.progress import Counter
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.spanning import tuning

NO_PAIR = np.iinfo(np.int64).max  # value for a missing edge, which sorts after all pairs

Ids = npt.NDArray[Any]


class Lightest(NamedTuple):
    """For each component, the first known edge that leaves it, in the order of edges.

    Attributes
    ----------
    weights : float array of shape (components,)
        inf if no edge is known.
    pairs : int64 array of shape (components,)
        NO_PAIR if no edge is known.
    """

    weights: npt.NDArray[Any]
    pairs: Ids


class Pool:
    """Edges from points to listed points outside of the points' components.

    Parameters
    ----------
    n : int
        Number of points.
    sources, targets : integer arrays of shape (edges,)
    weights : float array of shape (edges,)
    """

    def __init__(self, n: int, sources: Ids, targets: Ids, weights: npt.NDArray[Any]) -> None:
        self.n, self.sources, self.targets, self.weights = n, sources, targets, weights

    def add(self, sources: Ids, targets: Ids, weights: npt.NDArray[Any]) -> None:
        """Add edges to the pool."""
        self.sources = np.concatenate([self.sources, sources.astype(self.sources.dtype)])
        self.targets = np.concatenate([self.targets, targets.astype(self.targets.dtype)])
        self.weights = np.concatenate([self.weights, weights])

    def keep_leaving(self, labels: Ids) -> None:
        """Drop the edges within a component."""
        leaving = labels[self.sources] != labels[self.targets]
        self.sources, self.targets, self.weights = self.sources[leaving], self.targets[leaving], self.weights[leaving]

    def listed(self) -> Ids:
        """Return the count of edges that start at each point: shape (n,)."""
        return np.bincount(self.sources, minlength=self.n)

    def lightest(self, labels: Ids, count: int) -> Lightest:
        """Return, for each of `count` components, the first known edge that leaves it."""
        ends = labels[self.sources], labels[self.targets]
        weights = np.full(count, np.inf, self.weights.dtype)
        for end in ends:
            np.minimum.at(weights, end, self.weights)
        pairs = np.full(count, NO_PAIR)
        for end in ends:
            tied = np.flatnonzero(self.weights == weights[end])
            np.minimum.at(pairs, end[tied], pairs_of(self.sources[tied], self.targets[tied], self.n))
        return Lightest(weights, pairs)


def pairs_of(left: Ids, right: Ids, n: int) -> npt.NDArray[np.int64]:
    """Return one number per edge that identifies its two ends: smaller end * n + larger end.

    >>> pairs_of(np.array([3, 0]), np.array([1, 2]), 10)
    array([13,  2])
    """
    pairs: npt.NDArray[np.int64] = np.minimum(left, right).astype(np.int64) * n + np.maximum(left, right)
    return pairs


Search = Callable[[Ids, int, Ids], Neighbors]
Bounds = Callable[[Ids, int], npt.NDArray[np.float64]]

_SIZES = 4 ** np.arange(32)  # numbers of neighbours for which a search may ask
_ENTRY_BYTES = 64  # peak memory in bytes per list entry, while the entry is found, weighted and added to the pool


class Forest:
    """Components of points, which rounds merge until one is left.

    Parameters
    ----------
    lists : Neighbors of shape (n, k)
        The nearest other points of every point, in host memory.
    core : float array of shape (n,)
        The core distance of each point; at most the last distance in its list.
    search : callable(rows, k, labels) -> Neighbors of shape (len(rows), k)
        Finds, for each of the points `rows`, the k nearest points with another label; entries are -1 if fewer exist.
    least : callable(labels, component) -> float64 array, optional
        Returns lower bounds of the distances of a component's points, in order, to all points of other components.
    memory : int, optional
        Bytes for the lists of one search.
    """

    def __init__(
        self,
        lists: Neighbors,
        core: npt.NDArray[Any],
        search: Search,
        least: Bounds | None = None,
        memory: int | None = None,
    ) -> None:
        n, k = lists.indices.shape
        self.n, self.core, self.search, self.least = n, core, search, least
        self.entries = tuning.ENTRIES if memory is None else min(tuning.ENTRIES, memory // _ENTRY_BYTES)
        self.labels: Ids = np.arange(n)
        self.count = n
        sources = np.repeat(np.arange(n, dtype=index_dtype(n)), k)
        targets = lists.indices.ravel()
        self.pool = Pool(n, sources, targets, self._weights(sources, targets, lists.distances.ravel()))
        self.bounds = np.full(n, np.inf, lists.distances.dtype)
        self.bound_pairs = np.full(n, NO_PAIR)
        if k < n - 1:
            self.bounds[:] = lists.distances[:, -1]
            self.bound_pairs[:] = pairs_of(np.arange(n), lists.indices[:, -1], n)

    def grow(self) -> Lightest:
        """Run one round, and return the edges that it adds to the tree."""
        self.pool.keep_leaving(self.labels)
        lightest, known = self._settle_half()
        edges = Lightest(lightest.weights[known], lightest.pairs[known])
        self._merge(np.flatnonzero(known), edges.pairs)
        pairs, first = np.unique(edges.pairs, return_index=True)
        return Lightest(edges.weights[first], pairs)

    def _settle_half(self) -> tuple[Lightest, npt.NDArray[np.bool_]]:
        """Search until half of the components know their lightest edge.

        Return the lightest known edge of each component, and a mask of the components for which it is final.
        """
        sizes = np.bincount(self.labels)
        # for each component, the maximum number of points that may search in one step
        limits = np.zeros(self.count, np.int64)
        while True:
            lightest = self.pool.lightest(self.labels, self.count)
            asking = self._asking(lightest)
            known = np.ones(self.count, bool)
            known[self.labels[asking]] = False
            lacking = (self.count + 1) // 2 - int(np.count_nonzero(known))
            if lacking <= 0:
                return lightest, known
            unknown = np.flatnonzero(~known)
            first = unknown[np.argsort(sizes[unknown], kind="stable")[:lacking]]
            large = (sizes[first] >= tuning.LARGE_COMPONENT) & (self.least is not None)
            for component in first[large & (limits[first] == 0)]:
                self._bound(int(component))
            limits[first] = np.where(large, np.maximum(tuning.FIRST_ASKED, tuning.GROWTH * limits[first]), self.n)
            rows = self._nearest(self._asking(lightest), limits)
            self._ask(rows, self.n - sizes[self.labels[rows]])

    def _bound(self, component: int) -> None:
        """Raise the bounds of a component's points to lower bounds of their distances to all other components."""
        assert self.least is not None
        rows = np.flatnonzero(self.labels == component)
        with np.errstate(over="ignore"):  # a bound may overflow only if a distance does
            least = self.least(self.labels, component).astype(self.bounds.dtype)
        higher = least > self.bounds[rows]
        self.bounds[rows[higher]], self.bound_pairs[rows[higher]] = least[higher], -1

    def _nearest(self, asking: Ids, limits: Ids) -> Ids:
        """Return the points in `asking` with the smallest bounds, at most `limits[c]` for each component c."""
        order = asking[np.lexsort((self.bounds[asking], self.labels[asking]))]
        labels = self.labels[order]
        places = np.arange(len(order)) - np.searchsorted(labels, labels)
        return order[places < limits[labels]]

    def _asking(self, lightest: Lightest) -> Ids:
        """Return the points that may have an edge before the first known edge of their component."""
        weights, pairs = lightest.weights[self.labels], lightest.pairs[self.labels]
        earlier = (self.bounds == weights) & (self.bound_pairs < pairs)
        return np.flatnonzero((self.bounds < weights) | earlier)

    def _ask(self, rows: Ids, others: Ids) -> None:
        """Search for longer lists of the points `rows`, and add the edges to the pool.

        The lists contain the nearest points outside of the point's component. `others` is, for each row, the count of
        points outside of its component.
        """
        listed = self.pool.listed()[rows]
        wanted = np.searchsorted(_SIZES, listed, "right")
        for place in np.flatnonzero(np.bincount(wanted)).tolist():
            k, asked = min(int(_SIZES[place]), self.n - 1), np.flatnonzero(wanted == place)
            step = max(1, self.entries // k)
            for begin in range(0, len(asked), step):
                some = asked[begin : begin + step]
                self._list(rows[some], listed[some], others[some], self.search(rows[some], k, self.labels))

    def _list(self, rows: Ids, before: Ids, others: Ids, found: Neighbors) -> None:
        """Add the edges of new lists to the pool, except the first `before` of each row, which are already in it.

        The bounds of the rows become the last entries of their new lists.
        """
        k = found.indices.shape[1]
        new = (np.arange(k) >= before[:, None]) & (found.indices >= 0)
        sources, targets = np.repeat(rows, new.sum(axis=1)), found.indices[new]
        self.pool.add(sources, targets, self._weights(sources, targets, found.distances[new]))
        more = others > k
        self.bounds[rows] = np.where(more, found.distances[:, -1], np.inf)
        self.bound_pairs[rows] = np.where(more, pairs_of(rows, found.indices[:, -1], self.n), NO_PAIR)

    def _merge(self, components: Ids, pairs: Ids) -> None:
        """Join each component with the component at the other end of its lightest edge."""
        left, right = self.labels[pairs // self.n], self.labels[pairs % self.n]
        parents = np.arange(self.count)
        parents[components] = np.where(left == components, right, left)
        # From child to parent, edges never get heavier. So the only cycles are two components that choose the same
        # edge.
        mutual = (parents[parents] == np.arange(self.count)) & (parents > np.arange(self.count))
        parents[mutual] = np.flatnonzero(mutual)
        while (parents[parents] != parents).any():
            parents = parents[parents]
        is_root = np.zeros(self.count, bool)
        is_root[parents] = True
        numbers = np.cumsum(is_root) - 1
        self.count, self.labels = int(numbers[-1]) + 1, numbers[parents][self.labels]

    def _weights(self, sources: Ids, targets: Ids, distances: npt.NDArray[Any]) -> npt.NDArray[Any]:
        weights: npt.NDArray[Any] = np.maximum(distances, np.maximum(self.core[sources], self.core[targets]))
        return weights


def spanning_edges(
    lists: Neighbors,
    core: npt.NDArray[Any],
    search: Search,
    bar: Counter,
    least: Bounds | None = None,
    memory: int | None = None,
) -> Lightest:
    """Return the edges of the minimum spanning tree in their total order; for the parameters see :class:`Forest`.

    Parameters
    ----------
    bar : Counter
        Counts the edges of the tree.
    """
    forest = Forest(lists, core, search, least, memory)
    rounds = []
    while forest.count > 1:
        rounds.append(forest.grow())
        bar.add(len(rounds[-1].pairs))
    weights, pairs = (np.concatenate(part) for part in zip(*rounds, strict=True))
    order = np.lexsort((pairs, weights))
    return Lightest(weights[order], pairs[order])
