"""Reverse lists: for each point, some of the points that list it, ordered by its position in their lists."""

from __future__ import annotations

from typing import Any

import torch

from tonari.cuda.compiling.rehearsal import numbers_from
from tonari.cuda.launch import launch
from tonari.nn_descent import tuning
from tonari.nn_descent.entries import ID, MISSING, NEW
from tonari.nn_descent.memory import columns_sorted


def reverse_of(entries: Any, hubs: int, room: int) -> Any:
    """Find, for each point, up to `room` points that list it among their first `hubs` entries.

    Parameters
    ----------
    entries : int32 tensor of shape (n, size)

    Returns
    -------
    int32 tensor of shape (n, room)
        The points that list each point, in the order of (column, row) of the entries. A point is NEW if its entry is
        NEW. Rows are padded with MISSING.
    """
    from tonari.nn_descent.cuda.kernels.reverse import reverse_kernel

    n, size = entries.shape
    device = entries.device
    found = torch.full((n, room), MISSING, dtype=torch.int32, device=device)
    counts = torch.zeros(n, dtype=torch.int64, device=device)
    points = numbers_from(0, n + 1, device, torch.int32)
    step = columns_sorted(n, hubs)
    for column in range(0, min(hubs, size), step):
        some = entries[:, column : min(column + step, hubs, size)].T
        listed, numbers, firsts = _listed(some, points)
        launch(
            reverse_kernel,
            -(-some.numel() // tuning.REVERSE_BLOCK),
            {
                "listed_ptr": listed,
                "numbers_ptr": numbers,
                "firsts_ptr": firsts,
                "counts_ptr": counts,
                "entries_ptr": entries,
                "reverse_ptr": found,
                "pairs": some.numel(),
                "n": n,
                "room": room,
                "size": size,
                "column": column,
            },
            constants={"BLOCK": tuning.REVERSE_BLOCK, "NEW": NEW},
            warps=4,
        )
        if device.type != "meta":
            counts += firsts.diff()
    return found


def _listed(some: Any, points: Any) -> tuple[Any, Any, Any]:
    """Sort the entries in some columns by id; return the ids, the entries' positions, and where each id begins."""
    if some.device.type == "meta":  # a rehearsal skips the rest, because importing torch's sort takes seconds
        numbers, firsts = (
            torch.empty(count, dtype=torch.int64, device="meta") for count in (some.numel(), len(points))
        )
        return torch.empty(some.numel(), dtype=torch.int32, device="meta"), numbers, firsts
    listed, numbers = torch.sort(torch.where(some < 0, len(points) - 1, some & ID).reshape(-1), stable=True)
    return listed, numbers, torch.searchsorted(listed, points)
