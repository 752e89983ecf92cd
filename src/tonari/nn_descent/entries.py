"""Neighbour lists while they grow: an id in 30 bits, and a bit for what has not met the others yet.

wang2021 (section 4) keeps a list of NEW and one of OLD neighbours per object; a bit in the entry says the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NEW = 1 << 30
ID = NEW - 1  # mask
MISSING = -1
MOST_POINTS = NEW

# Multipliers of a hash that mixes a row, a column and a seed (32-bit finalisers of that kind: Steele et al., 2014).
_MIX = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35))


def random_entries(
    n: int, size: int, seed: int, *, rows: slice = slice(None), among: tuple[int, int] | None = None
) -> npt.NDArray[np.int32]:
    """Random new entries for some rows: where wang2021 starts (algorithm 1, line 2).

    Parameters
    ----------
    n : int
        Points.
    size : int
        Columns.
    seed : int
        Every row depends on it and on its own number alone.
    rows : slice
        Rows that are wanted, of n.
    among : (begin, end), optional
        Ids to draw from; default: all.

    Returns
    -------
    int32 array of shape (rows, size)
        No row has its own number or an id twice: such entries are missing.

    >>> random_entries(5, 3, seed=0).shape
    (5, 3)
    """
    begin, end = among or (0, n)
    numbers = np.arange(n, dtype=np.uint32)[rows, None]
    with np.errstate(over="ignore"):
        mixed = numbers * _MIX[0] + np.arange(size, dtype=np.uint32) * _MIX[1] + np.uint32(seed % 2**32) * _MIX[2]
        for shift in (16, 13, 16):
            mixed = (mixed ^ (mixed >> np.uint32(shift))) * _MIX[1]
    drawn = np.sort((begin + mixed.astype(np.int64) % (end - begin)).astype(np.int32), axis=1)
    again = np.zeros(drawn.shape, bool)
    again[:, 1:] = drawn[:, 1:] == drawn[:, :-1]
    return np.where(again | (drawn == numbers.astype(np.int32)), np.int32(MISSING), drawn | np.int32(NEW))
