"""Blocks of queries: the steps of a pass over the points for one block, and the division of queries into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from tonari.core import _native
from tonari.exact.cpu.join import Bounds
from tonari.exact.cpu.rows.clusters import Numbers, Sketch


class Block(Protocol):
    """A block of queries during its pass over the points, such as a native RowBlock."""

    def open(self, begin: int, end: int, places: Numbers | None = None, asked: Sketch | None = None) -> None:
        """Start queries [begin, end).

        If `places` has a position among the packed points for each query (:class:`Near`), the points around that
        position give its first threshold.
        """

    def screen(
        self,
        points: _native.PackedPoints,
        group_begin: int,
        group_end: int,
        stride: int,
        take_stride: bool,
        looks: bool,
    ) -> None:
        """Screen the groups in a range of points: all groups, every stride-th group, or all except these.

        If `looks` is True, a comparison of contracted rows first rules out some of the groups.
        """

    @property
    def looked(self) -> tuple[int, int, int]:
        """The numbers of all pairs of a tile and a group, of pairs that looks compared, and of pairs that looks left.

        A look compares contracted rows. The screen then compares the pairs that the looks could not rule out.
        """

    def end_sample(self) -> None:
        """Set the rows' thresholds by the groups that were screened."""

    def absorb(self, other: Any) -> None:
        """Add the results of a block for the same queries among other points."""


AnyBlock = TypeVar("AnyBlock", bound=Block)


def cut_blocks(begin: int, end: int, size: int) -> list[Bounds]:
    """Return the bounds of blocks of queries [begin, end)."""
    return [(first, min(first + size, end)) for first in range(begin, end, size)]


def batches(items: list[Bounds], size: int) -> Iterator[list[Bounds]]:
    """Yield the items in lists of at most `size`."""
    for at in range(0, len(items), size):
        yield items[at : at + size]
