"""Exact search of each query among the points listed for it, on a device: many small searches in few launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.core.listed import Listed
from tonari.core.neighbors import Neighbors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.groups import refine_groups


def search_listed(
    queries: Any,
    points: Any,
    k: int,
    metric: str,
    listed: Listed,
) -> Neighbors:
    """Find the k nearest of the points listed for each query; see ``exact/cpu/listed.py``.

    Queries with lists of similar length share a launch; shorter lists are padded.

    Parameters
    ----------
    queries, points : tensors of shape (m, d) and (n, d) on one device
    k, metric, listed
        As on the CPU; in host memory.

    Returns
    -------
    Neighbors of shape (m, k), tensors on the device
    """
    import torch

    device, m = points.device, len(queries)
    double = torch.float64 in (queries.dtype, points.dtype)
    distances = torch.empty((m, k), dtype=torch.float64 if double else torch.float32, device=device)
    indices = torch.empty((m, k), dtype=torch.int32, device=device)
    begins, ends, lengths = listed.begins, listed.ends, listed.lengths
    order = np.argsort(lengths, kind="stable")
    lengths = np.maximum(lengths[order], 1)
    numbers = torch.from_numpy(listed.numbers).to(device)
    own = None if listed.self_ids is None else torch.from_numpy(listed.self_ids).to(device)
    at = 0
    while at < m:
        stop = int(np.searchsorted(lengths, max(16, int(lengths[at] * tuning.LISTED_WIDENING)), side="right"))
        while (stop - at) * int(lengths[stop - 1]) > tuning.LISTED_ENTRIES and stop > at + 1:
            stop = at + (stop - at + 1) // 2
        rows = torch.from_numpy(order[at:stop]).to(device)
        first, last = (torch.from_numpy(part[order[at:stop]]).to(device)[:, None] for part in (begins, ends))
        places = first + torch.arange(int(lengths[stop - 1]), device=device)
        there = places < last
        ids = numbers[torch.where(there, places, 0)] if len(numbers) else torch.zeros_like(places)
        groups = torch.where(there, ids, -1).to(torch.int32)
        left_out = None if own is None else own[rows]
        distances[rows], indices[rows] = refine_groups(
            queries[rows], points, groups, k, metric=metric, group=1, own=left_out, double=double
        )
        at = stop
    return Neighbors(distances, indices)
