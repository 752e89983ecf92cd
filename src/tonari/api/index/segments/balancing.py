"""Choose the segments of an Index to merge and to pack again when points are added or removed.

    add        append a segment of the new rows
    remove     up to AROUND removed points stay in their segment, and searches skip them; with more, the segment is
               packed without them
    both       merge neighbouring segments until each, except for small ones, is at least twice as long as the next

An Index therefore has at most about log2(n / SMALL) + 2 segments. A row is packed again only when its segment is
merged, and the merged segment is at least 1.5 times as long as the row's old segment. Each row is therefore packed
O(log n) times in all; in addition, each call of add packs up to SMALL older rows. Removing a point packs at most
n / AROUND rows on average.

Segments share one budget: a new segment is planned within the memory that the other segments do not use. If that is
too little, all points are packed as one segment, as in a new Index.

On a core of a Xeon (20,000 rows of 8 or 128 dimensions, "exact" and "kdtree", k=10, threads=1, process time), packing
1,024 rows takes 0.2 to 0.7 ms. An additional segment adds 0.02 to 0.06 ms to a search of one query, and 0.2 to 0.5 ms
to one of 100 queries, so packing SMALL rows takes as long as a few searches. 64 removed points add 0.07 to 0.15 ms to a
search of one query, and 1 to 4 ms to one of 100 queries; packing all rows takes 4 to 12 ms. Let packing all rows take P
seconds, let each removed point add c seconds to a search, and let removals be as frequent as searches. The best number
of removed points to keep is then sqrt(2 P / c): about 20 for batches of 100 queries, and 100 for single queries. AROUND
is between these two numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tonari.api import tuning
from tonari.api.index.segments.part import Ids, Part
from tonari.core.errors import BudgetExceeded
from tonari.cuda.streams import Written
from tonari.sparse.rows import SparseRows, joined_rows

Make = Callable[[Any, int], Any]  # makes a Segment or a SparseSegment; takes rows and the bytes that other segments use
Piece = Part | tuple[Any, Ids]  # a part, or new rows with their ids


def balanced(pieces: Sequence[Piece], make: Make) -> list[Part]:
    """Merge adjacent pieces until each segment is at least twice as long as the next, and return the parts.

    Raises
    ------
    BudgetExceeded
        The budget is too small even for all points as one segment.
    """
    groups = [[pieces[at] for at in group] for group in groups_of([_length(piece) for piece in pieces])]
    try:
        return _packed(groups, make)
    except BudgetExceeded:
        if len(groups) == 1:
            raise
        return [packed_together(pieces, make, 0)]


def groups_of(lengths: Sequence[int]) -> list[list[int]]:
    """Group adjacent pieces of these lengths until each group is at least twice as long as the next one.

    >>> groups_of([100_000, 3000, 2000, 40])
    [[0], [1, 2], [3]]
    """
    groups: list[tuple[int, list[int]]] = []
    for at, length in enumerate(lengths):
        groups.append((length, [at]))
        while len(groups) > 1 and groups[-2][0] < max(tuning.SMALL, 2 * groups[-1][0]):
            (first, one), (second, other) = groups[-2:]
            groups[-2:] = [(first + second, one + other)]
    return [group for _, group in groups]


def _length(piece: Piece) -> int:
    return piece.n if isinstance(piece, Part) else len(piece[1])


def _packed(groups: list[list[Piece]], make: Make) -> list[Part]:
    parts = [_kept(group) for group in groups]
    for at, group in enumerate(groups):
        if parts[at] is None:
            parts[at] = packed_together(group, make, held_bytes(part for part in parts if part is not None))
    return [part for part in parts if part is not None]


def _kept(group: list[Piece]) -> Part | None:
    """Return the only piece of a group if it is a part that needs no packing; otherwise None."""
    first = group[0]
    return first if len(group) == 1 and isinstance(first, Part) and len(first.gone) <= tuning.AROUND else None


def held_bytes(parts: Any) -> int:
    """Return the bytes that the prepared points of several parts take together."""
    return sum(part.segment.held_bytes for part in parts)


def packed_together(group: Sequence[Piece], make: Make, held: int) -> Part:
    """Pack adjacent pieces as one segment, while other segments use `held` bytes of memory."""
    rows = [piece.points_left if isinstance(piece, Part) else piece[0] for piece in group]
    ids = [piece.ids_left if isinstance(piece, Part) else piece[1] for piece in group]
    segment = make(joined(rows), held)
    on_host = isinstance(segment.points, np.ndarray | SparseRows)
    written = None if on_host else Written(segment.points, segment.given)
    return Part(segment, np.concatenate(ids), None, written)


def joined(rows: list[Any]) -> Any:
    """Concatenate arrays of rows, on the device that holds them."""
    if len(rows) == 1:
        return rows[0]
    if isinstance(rows[0], SparseRows):
        return joined_rows(rows)
    return np.concatenate(rows) if isinstance(rows[0], np.ndarray) else sys.modules["torch"].cat(rows)
