"""Entries of the neighbour lists during a run: an id in 30 bits, and a bit that marks an entry as new.

A new entry has not been compared with the other entries of its list yet. wang2021 (section 4) keeps separate lists of
NEW and OLD neighbours per object; here one bit per entry replaces them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NEW = 1 << 30
ID = NEW - 1  # bits of an entry that contain the id
MISSING = -1
MOST_POINTS = NEW

# Multipliers for the hash of (row, column, seed), in the style of the 32-bit finalisers of Steele et al. (2014).
MIX = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)


def random_entries(
    n: int, size: int, seed: int, *, rows: slice = slice(None), among: tuple[int, int] | None = None
) -> npt.NDArray[np.int32]:
    """Draw random new entries for some rows: the start of wang2021 (algorithm 1, line 2).

    Parameters
    ----------
    n : int
        Number of points.
    size : int
        Number of columns.
    seed : int
        The seed; the entries of a row depend only on the seed and on the row number.
    rows : slice
        Rows to draw entries for, out of n.
    among : (begin, end), optional
        Range of ids to draw from. Default: all.

    Returns
    -------
    int32 array of shape (rows, size)
        Duplicate ids and the row's own id are replaced by MISSING.

    Examples
    --------
    >>> random_entries(5, 3, seed=0).shape
    (5, 3)
    """
    begin, end = among or (0, n)
    numbers = np.arange(n, dtype=np.uint32)[rows, None]
    by_row, by_column, by_seed = map(np.uint32, MIX)
    with np.errstate(over="ignore"):
        mixed = numbers * by_row + np.arange(size, dtype=np.uint32) * by_column + np.uint32(seed % 2**32) * by_seed
        for shift in (16, 13, 16):
            mixed = (mixed ^ (mixed >> np.uint32(shift))) * by_column
    drawn = np.sort((begin + mixed.astype(np.int64) % (end - begin)).astype(np.int32), axis=1)
    again = np.zeros(drawn.shape, bool)
    again[:, 1:] = drawn[:, 1:] == drawn[:, :-1]
    return np.where(again | (drawn == numbers.astype(np.int32)), np.int32(MISSING), drawn | np.int32(NEW))
