"""The known edges that leave a component, and the lightest edge of each component.

Edges have a total order, by (weight, smaller end, larger end), so the minimum spanning tree is unique. Both ends are
stored as one number, a "pair": smaller * n + larger. Pairs are ordered like (smaller, larger).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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
