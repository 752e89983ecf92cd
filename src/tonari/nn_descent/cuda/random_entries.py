"""The random start on a device, with the same bits as ``nn_descent/entries.py``."""

from __future__ import annotations

from typing import Any

import torch

from tonari.nn_descent.entries import MISSING, MIX, NEW

_BLOCK = 1 << 20  # number of random numbers drawn in one step
_WORD = 2**32 - 1


def random_on(device: Any, n: int, size: int, seed: int) -> Any:
    """Draw random new entries for all rows on a device (wang2021, algorithm 1, lines 1 to 4).

    Parameters
    ----------
    device : torch.device
    n, size, seed : int
        As for :func:`tonari.nn_descent.entries.random_entries`.

    Returns
    -------
    int32 tensor of shape (n, size)
    """
    drawn = torch.empty((n, size), dtype=torch.int32, device=device)
    columns = torch.arange(size, dtype=torch.int64, device=device) * MIX[1] + seed * MIX[2] % 2**32
    step = max(1, _BLOCK // size)
    for begin in range(0, n, step):
        own = torch.arange(begin, min(begin + step, n), dtype=torch.int64, device=device)[:, None]
        mixed = (own * MIX[0] + columns) & _WORD
        for shift in (16, 13, 16):  # int64 products may overflow, but their last 32 bits are correct
            mixed = ((mixed ^ (mixed >> shift)) * MIX[1]) & _WORD
        ids = (mixed % n).sort(1).values
        again = torch.zeros(ids.shape, dtype=torch.bool, device=device)
        again[:, 1:] = ids[:, 1:] == ids[:, :-1]
        drawn[begin : begin + step] = torch.where(again | (ids == own), MISSING, ids | NEW).to(torch.int32)
    return drawn
