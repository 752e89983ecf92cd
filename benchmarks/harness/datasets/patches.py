"""Rows with the colours of windows of photographs: 16 x 16 pixels of red, green and blue, 768 whole numbers.

The windows are at random positions in the pictures of scikit-image and scikit-learn, no two at the same position.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import photographs

SIDE = 16
WIDTH = SIDE * SIDE * 3


def patches(count: int, seed: int) -> Any:
    """Return rows (count, 768), float32.

    Raises
    ------
    RuntimeError
        The pictures have fewer than `count` windows.
    """
    shape = SIDE, SIDE, 3
    pictures = [
        np.lib.stride_tricks.sliding_window_view(picture, shape)[:, :, 0]
        for picture in photographs.colour_photographs()
        if min(picture.shape[:2]) >= SIDE
    ]
    ends = np.cumsum([picture.shape[0] * picture.shape[1] for picture in pictures])
    if count > ends[-1]:
        raise RuntimeError(f"{count} windows were asked for, the photographs have {ends[-1]}")
    chosen = np.random.default_rng(seed).permutation(ends[-1])[:count]
    rows = np.empty((count, WIDTH), np.float32)
    for picture, begin, end in zip(pictures, (0, *ends), ends, strict=False):
        mine = np.flatnonzero((chosen >= begin) & (chosen < end))
        top, left = np.divmod(chosen[mine] - begin, picture.shape[1])
        rows[mine] = picture[top, left].reshape(len(mine), WIDTH)
    return rows
