"""Helpers of several exports: lists with or without the point itself, and checks that prevent misinterpretation."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tonari.core.results.neighbors import Neighbors
from tonari.graph.lists import Lists


class HasLists(Protocol):
    """The interface of :class:`tonari.KNNGraph` that exports use."""

    @property
    def lists(self) -> Lists:
        """The graph's neighbour lists and properties, as a plain internal record."""


def with_self(lists: Lists, wanted: bool) -> Neighbors:
    """Return the lists in host memory, either with the point itself in column 0 at distance 0, or without it."""
    distances, indices = lists.in_numpy()
    if wanted == lists.include_self:
        return Neighbors(distances, indices)
    if not wanted:
        return Neighbors(distances[:, 1:], indices[:, 1:])
    if lists.measure.descending:
        raise ValueError(
            f"include_self=True: a {lists.metric} graph without self does not store the similarity of a point to "
            "itself; build it with include_self=True"
        )
    own = np.arange(lists.n, dtype=indices.dtype)[:, None]
    zero = np.zeros((lists.n, 1), distances.dtype)
    return Neighbors(np.hstack([zero, distances]), np.hstack([own, indices]))


def refuse_similarities(lists: Lists, reader: str) -> None:
    """Refuse a graph whose values are larger where points are nearer."""
    if lists.measure.descending:
        raise ValueError(
            f"{reader} reads distances, and this graph has similarities ({lists.metric}), larger where points are "
            "nearer; build it with metric='cosine' or another distance"
        )


def refuse_squares(lists: Lists, reader: str) -> None:
    """Refuse squared distances where distances are expected."""
    record = lists.measure
    if record.squares and not record.root:
        raise ValueError(f"{reader} reads distances that are not squared; build the graph with metric='euclidean'")


def refuse_missing(found: Neighbors, reader: str) -> None:
    """Refuse a graph with missing neighbours (-1); `reader` is the library that needs full lists."""
    missing = found.indices < 0
    if missing.any():
        row = int(missing.any(axis=1).argmax())
        raise ValueError(
            f"{reader} reads lists of one length, and row {row} has {int(missing[row].sum())} of its "
            f"{missing.shape[1]} neighbours missing (-1); build the graph of these points anew, or trim it"
        )
