"""Which segments of an Index are packed anew, and together, when points come and go.

    add        a segment of the new rows is put at the end
    remove     up to AROUND removed points of a segment are searched around; with more, it is packed without them
    both       neighbouring segments are merged until each, but for small ones, is at least twice as long as the next

So there are at most about log2(n / SMALL) + 2 segments. A row is packed again only when its segment merges, after which
that is at least half again as long: O(log n) times in all, plus up to SMALL rows for each call of add. Removing a point
packs n / AROUND rows at most, on average.

Segments share one budget: what is packed anew is planned with what the others leave. If that is too little, all points
are packed together, as those of an Index made anew.

On a core of a Xeon (20,000 rows of 8 or 128 dimensions, "exact" and "kdtree", k=10, threads=1, process time), packing
1,024 rows takes 0.2 to 0.7 ms; one segment more costs a search of one query 0.02 to 0.06 ms, and of 100 queries 0.2 to
0.5 ms. So SMALL rows are packed again in the time of a few searches. 64 removed points cost a search of one query 0.07
to 0.15 ms, and of 100 queries 1 to 4 ms; packing all rows takes 4 to 12 ms. Where packing takes P, each removed point
costs a search c, and there are as many searches as removals, sqrt(2 P / c) removed points are best: 20 for batches of
100 queries, 100 for single ones. AROUND lies between.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tonari.api.part import Ids, Part
from tonari.api.segment import Segment
from tonari.core.errors import BudgetExceeded
from tonari.cuda.streams import Written

AROUND = 64  # removed points that a search of a segment finds in vain
SMALL = 1024  # rows that are packed faster than a search visits one more segment

Make = Callable[[Any, int], Segment]  # of checked rows, beside segments that hold so many bytes
Piece = Part | tuple[Any, Ids]  # a part, or new rows and their ids


def balanced(pieces: Sequence[Piece], make: Make) -> list[Part]:
    """Merge neighbouring pieces until the parts are few.

    Raises
    ------
    BudgetExceeded
        Memory does not hold all points as one segment.
    """
    groups: list[list[Piece]] = []
    for piece in pieces:
        groups.append([piece])
        while len(groups) > 1 and _length(groups[-2]) < max(SMALL, 2 * _length(groups[-1])):
            groups[-2:] = [groups[-2] + groups[-1]]
    try:
        return _packed(groups, make)
    except BudgetExceeded:
        if len(groups) == 1:
            raise
        return [packed_together(pieces, make, 0)]


def _length(group: list[Piece]) -> int:
    return sum(piece.n if isinstance(piece, Part) else len(piece[1]) for piece in group)


def _packed(groups: list[list[Piece]], make: Make) -> list[Part]:
    parts = [_kept(group) for group in groups]
    for at, group in enumerate(groups):
        if parts[at] is None:
            parts[at] = packed_together(group, make, held_bytes(part for part in parts if part is not None))
    return [part for part in parts if part is not None]


def _kept(group: list[Piece]) -> Part | None:
    """Return the part that stays as it is, if a group is one."""
    first = group[0]
    return first if len(group) == 1 and isinstance(first, Part) and len(first.gone) <= AROUND else None


def held_bytes(parts: Any) -> int:
    """Return the memory that prepared points of some parts take."""
    return sum(part.segment.held_bytes for part in parts)


def packed_together(group: Sequence[Piece], make: Make, held: int) -> Part:
    """Pack pieces as one segment."""
    rows = [piece.points_left if isinstance(piece, Part) else piece[0] for piece in group]
    ids = [piece.ids_left if isinstance(piece, Part) else piece[1] for piece in group]
    segment = make(joined(rows), held)
    written = None if isinstance(segment.points, np.ndarray) else Written(segment.points, segment.given)
    return Part(segment, np.concatenate(ids), None, written)


def joined(rows: list[Any]) -> Any:
    """Put rows one below the other, where they are."""
    if len(rows) == 1:
        return rows[0]
    return np.concatenate(rows) if isinstance(rows[0], np.ndarray) else sys.modules["torch"].cat(rows)
