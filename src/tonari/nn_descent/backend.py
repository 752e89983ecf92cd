"""What a device does for NN-Descent; ``driver.py`` decides what is done next."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from tonari.core.neighbors import Neighbors


class Round(NamedTuple):
    """What a round leaves behind.

    Attributes
    ----------
    entries : int32 of shape (n, list_size)
        As ``lists.py`` says; rows ascend by (returned value, id), missing entries at the end.
    found : Neighbors of shape (n, k)
        The first k of each row, with the distances of exact search.
    changed : int
        Entries among those that their rows did not have before.
    phi : float
        Sum of their distances (wang2021, equation 3).
    """

    entries: Any
    found: Neighbors
    changed: int
    phi: float


class Backend(Protocol):
    """The steps of NN-Descent on one device, for the points and the plan that it was made with. Arrays are there."""

    def start(self, kind: str) -> Any:
        """Entries to begin with, all new: "clusters" or "random"."""

    def seeds(self, boundary: int, size: int) -> Any:
        """New entries, int32 (n, size), of points across the boundary alone: ids below it are one side."""

    def entries_of(self, indices: Any, *, new: bool) -> Any:
        """Entries of lists of neighbours, int32 (n, any), -1 where one is missing."""

    def beside(self, first: Any, second: Any) -> Any:
        """Two blocks of entries of the same rows in one, filled up or cut to the list's size."""

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False) -> Round:
        """One round: every point meets the neighbours of its neighbours; beyond a boundary only, if there is one.

        With the plan's numbers of a light round, if it is one.
        """

    def exact(self, rows: Any, k: int) -> Neighbors:
        """The true neighbours of some points, a NumPy int64 array of numbers; never themselves. Beside the points."""

    def of_rows(self, found: Neighbors, rows: Any) -> Neighbors:
        """Those rows of an answer, in host memory."""
