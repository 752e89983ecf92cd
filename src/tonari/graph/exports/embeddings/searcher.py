"""The interface of an index that exports use."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors
from tonari.graph.lists import Lists, refuse_filtered


class Searcher(Protocol):
    """The interface of :class:`tonari.Index` that is needed to embed new points."""

    metric: str
    weights: tuple[float, ...] | None
    transform: npt.NDArray[np.float64] | None

    @property
    def n(self) -> int:
        """The number of points."""

    @property
    def ids_are_rows(self) -> bool:
        """Whether the ids in results are row numbers."""

    def search(self, queries: Any, k: int) -> Neighbors:
        """Find the k nearest points of every query."""


def searcher_of(lists: Lists, index: Searcher) -> Searcher:
    """Return a copy of an index that later updates do not change; raise ValueError if it does not match the graph."""
    instead = "the index searches all points; leave index out, so that new points cannot be embedded"
    refuse_filtered(lists.filters, "the graph", instead)
    if index.weights != lists.weights:
        raise ValueError(
            "index has other weights than the graph: make it with those of the graph, weights=graph.weights"
        )
    ours, theirs = index.transform, lists.transform
    if (ours is None) != (theirs is None) or (ours is not None and not np.array_equal(ours, theirs)):  # type: ignore[arg-type]
        raise ValueError(
            "index multiplies rows by another matrix than the graph: make it with that of the graph, "
            "transform=graph.transform"
        )
    if index.n != lists.n or index.metric != lists.metric:
        raise ValueError(
            f"index has {index.n} points and metric {index.metric!r}, the graph {lists.n} and {lists.metric!r}: pass "
            f"tonari.Index(points, metric={lists.metric!r}) of the graph's points"
        )
    if not index.ids_are_rows:
        raise ValueError("index: it was changed, and its ids are no rows of the graph; pass tonari.Index(index.points)")
    return copy.copy(index)
