"""What exports need of an index."""

from __future__ import annotations

from typing import Any, Protocol

from tonari.core.neighbors import Neighbors


class Searcher(Protocol):
    """What embedding new points needs of a :class:`tonari.Index`."""

    metric: str
    weights: tuple[float, ...] | None

    @property
    def n(self) -> int:
        """The number of points."""

    @property
    def ids_are_rows(self) -> bool:
        """Whether results name row numbers."""

    def search(self, queries: Any, k: int) -> Neighbors:
        """Find the k nearest points of every query."""
