"""The points that are excluded for each query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tonari.core.rows.slices import cut, in_room
from tonari.filters import tuning

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Excluded:
    """A list of excluded points for each of m queries; lists need no order, and may repeat a point.

    Kernels on the CPU read the lists as they are; sorting them takes several times as long as a count within a radius.

    Attributes
    ----------
    indptr : int64 array of shape (m + 1,)
    ids : int64 array
        Query i may not find the points ``ids[indptr[i]:indptr[i + 1]]``. The arrays may be the caller's.
    n : int
        The number of all points.

    Examples
    --------
    >>> Excluded(np.array([0, 3, 4]), np.array([4, 2, 4, 0]), 5).pairs.tolist()
    [2, 4, 5]
    """

    indptr: Ids
    ids: Ids
    n: int

    @cached_property
    def pairs(self) -> Ids:
        """Each excluded pair as query * n + point, in ascending order without repetition."""
        lengths, pairs = np.diff(self.indptr), self.ids.copy()
        for block in in_room(lengths, tuning.TABLE_BLOCK):
            some = pairs[self.indptr[block.start] : self.indptr[block.stop]]
            _sort_lists(some, lengths[block])
            some += np.repeat(np.arange(block.start, block.stop) * self.n, lengths[block])
        return distinct(pairs, in_place=True)


def _sort_lists(ids: Ids, lengths: Ids) -> None:
    """Sort each of several concatenated lists in place, provided that their lengths are similar.

    This is faster than sorting all pairs at once. If the lengths differ much, nothing is sorted, and :func:`distinct`
    does it later.
    """
    width, rows = int(lengths.max(initial=0)), len(lengths)
    if width < 2 or width * rows > 2 * len(ids):
        return
    if width * rows == len(ids):
        ids.reshape(rows, width).sort(axis=1)
        return
    present = np.arange(width) < lengths[:, None]
    table = np.full((rows, width), np.iinfo(np.int64).max)
    table[present] = ids
    table.sort(axis=1)
    ids[:] = table[present]


def distinct(numbers: Ids, *, in_place: bool = False) -> Ids:
    """Return the distinct numbers in an array, in ascending order.

    ``np.unique`` uses hashing, which is much slower than sorting if most numbers are distinct. A stable sort is fastest
    for numbers in short ascending runs, as in lists. With `in_place`, the array is overwritten, and a view is returned.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    if not len(numbers) or (numbers[1:] > numbers[:-1]).all():
        return numbers
    numbers = numbers if in_place else numbers.copy()
    if (numbers[1:] < numbers[:-1]).any():
        numbers.sort(kind="stable")
    kept = 1
    for block in cut(len(numbers) - 1, tuning.TABLE_BLOCK):
        ours = numbers[block.start : block.stop + 1]  # the block begins with the last number of the previous block
        new = np.compress(ours[1:] != ours[:-1], ours[1:])
        numbers[kept : kept + len(new)] = new
        kept += len(new)
    return numbers[:kept]
