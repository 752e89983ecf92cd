"""Search each query exactly among the points listed for it, on a device: many small searches in a few launches."""

from __future__ import annotations

from typing import Any

from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.listed import Listed
from tonari.exact.cuda import tuning
from tonari.exact.cuda.refine.groups import refine_groups


def search_listed(
    queries: Any,
    points: Any,
    k: int,
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,  # used only on the CPU, like `found`
    found: Neighbors | None = None,
) -> Neighbors:
    """Find the k nearest of the points listed for each query; see ``exact/cpu/direct/listed.py``.

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
    own = None if listed.self_ids is None else torch.from_numpy(listed.self_ids).to(device)
    for rows, ids in listed.batches(device, widening=tuning.LISTED_WIDENING, most=tuning.LISTED_ENTRIES):
        left_out = None if own is None else own[rows]
        distances[rows], indices[rows] = refine_groups(
            queries[rows], points, ids, k, metric=metric, group=1, own=left_out, double=double
        )
    return Neighbors(distances, indices)
