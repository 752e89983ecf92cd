"""A block of queries: its interface during a pass over the points, and how queries are divided into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from tonari.core import _native
from tonari.exact.cpu.join import Bounds
from tonari.exact.cpu.rows.clusters import Numbers, Sketch


class Block(Protocol):
    """A block of queries during its pass over the points, such as a native RowBlock."""

    def open(self, begin: int, end: int, places: Numbers | None = None, asked: Sketch | None = None) -> None:
        """Start a pass over the points for queries [begin, end).

        `places` and `asked` are as in :class:`Near`: the position of a packed point near each query, and the sketches
        of the queries. The first threshold of a query is computed from the points around its position.
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
        """Screen groups [group_begin, group_end) of packed points, and add survivors to the rows of the block.

        If `stride` is not 0, only every stride-th group is screened if `take_stride` is True, and only the other groups
        if it is False. If `looks` is True, a comparison of contracted rows rules out some of the groups first.
        """

    @property
    def looked(self) -> tuple[int, int, int]:
        """The numbers of pairs (query tile, point group): of all pairs, of those compared in a look, and of those kept.

        A look, which precedes the screen, compares the contracted rows of a tile and a group. The screen then compares
        only the pairs that the look kept because it could not rule them out.
        """

    def end_sample(self) -> None:
        """Set the threshold of each row from the scores of the sampled groups, all of which must have been screened."""

    def absorb(self, other: Any) -> None:
        """Merge the survivors of another block of the same queries, which has screened other points."""


AnyBlock = TypeVar("AnyBlock", bound=Block)


def cut_blocks(begin: int, end: int, size: int) -> list[Bounds]:
    """Cut queries [begin, end) into blocks of at most `size` queries, and return the bounds of each block."""
    return [(first, min(first + size, end)) for first in range(begin, end, size)]


def batches(items: list[Bounds], size: int) -> Iterator[list[Bounds]]:
    """Yield the items, in their order, in lists of at most `size` items."""
    for at in range(0, len(items), size):
        yield items[at : at + size]
