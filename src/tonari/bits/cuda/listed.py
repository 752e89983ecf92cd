"""Searches in lists of points, one for each query, for rows of bits on a device: many lists in each kernel launch."""

from __future__ import annotations

from typing import Any

import torch

from tonari.bits import tuning
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.listed import Listed
from tonari.cuda.devices import on
from tonari.cuda.launch import launch
from tonari.select.cuda.dispatch import k_smallest

_LISTED, _BYTES, _WARPS = 32, 32, 4


def search_listed(
    queries: Any,
    points: Any,
    k: int,
    metric: str,
    listed: Listed,
    *,
    threads: int | None = None,  # `threads` and `found` are used on the CPU, and ignored here
    found: Neighbors | None = None,
) -> Neighbors:
    """Find the k nearest points in each query's list; see ``exact/cpu/direct/listed.py``.

    Queries with lists of similar length share a launch; shorter lists are padded.

    Parameters
    ----------
    queries, points : uint8 tensors of shape (m, d) and (n, d) on one device
    k, metric, listed
        As on the CPU; `listed` is in host memory.

    Returns
    -------
    Neighbors of shape (m, k), tensors on the device
    """
    device, m = points.device, len(queries)
    distances = torch.full((m, k), float("inf"), dtype=torch.float32, device=device)
    indices = torch.full((m, k), -1, dtype=torch.int32, device=device)
    own = None if listed.self_ids is None else torch.from_numpy(listed.self_ids).to(device)
    with on(device):
        for rows, ids in listed.batches(device, widening=tuning.WIDENING, most=tuning.LISTED_ENTRIES):
            near = k_smallest(_values(queries, points, metric, rows, ids, own), min(k, ids.shape[1]))
            near_ids = ids.gather(1, near.indices.long())
            distances[rows, : near_ids.shape[1]] = near.values
            indices[rows, : near_ids.shape[1]] = near_ids.masked_fill(near.values.isinf(), -1)
    return Neighbors(distances, indices)


def _values(queries: Any, points: Any, metric: str, rows: Any, ids: Any, own: Any) -> Any:
    """Return the value of each query and each point of its list: inf for a missing point, and for the query itself."""
    from tonari.bits.cuda.kernels.listed import listed_values_kernel

    count, longest = ids.shape
    tiles = -(-longest // _LISTED)
    values = torch.empty((count, longest), dtype=torch.float32, device=ids.device)
    launch(
        listed_values_kernel,
        count * tiles,
        {
            "queries_ptr": queries,
            "points_ptr": points,
            "numbers_ptr": rows,
            "ids_ptr": ids,
            "own_ptr": own,
            "values_ptr": values,
            "d": points.shape[1],
            "query_stride": queries.stride(0),
            "point_stride": points.stride(0),
            "longest": longest,
            "tiles": tiles,
        },
        constants={"JACCARD": metric == "jaccard", "HAS_OWN": own is not None, "LISTED": _LISTED, "BYTES": _BYTES},
        warps=_WARPS,
    )
    return values
