"""Merge neighbour lists that were found in separate parts of the points, on the device that holds the lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tonari import inputs
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.cuda.devices import on
from tonari.metrics import get_metric
from tonari.select.cuda.ordering.order import ENTRY_BYTES, MERGE_BYTES, merge_lists


def merge_on_device(parts: Sequence[Neighbors], shifts: Sequence[int], k: int, metric: str) -> Neighbors:
    """Merge lists that are on one device and already checked; see :func:`tonari.merge_neighbors`.

    Waits for the device once, to read the largest index, which determines the index dtype.

    Returns
    -------
    Neighbors of shape (m, k)
        NumPy arrays or tensors, like the distances of the first part.
    """
    side = inputs.side_of(parts[0].distances, "part 0")
    lists = [tuple(inputs.as_tensor(array) for array in part) for part in parts]
    with on(lists[0][0].device):
        dtype = _index_dtype([ids for _, ids in lists], shifts)
        least = -float("inf") if get_metric(metric).descending else float("inf")
        shifted = [
            (values.masked_fill(ids < 0, least), (ids.to(dtype) + shift).masked_fill(ids < 0, -1))
            for (values, ids), shift in zip(lists, shifts, strict=True)
        ]
        merged, columns = shifted[0], shifted[0][1].shape[1]
        for other in shifted[1:]:
            columns += other[1].shape[1]
            merged = merge_lists(merged, other, min(k, columns), metric=metric)
        return Neighbors(*(inputs.hand_back(array[:, :k].contiguous(), side) for array in merged))


def no_lists(rows: int, k: int, n: int, metric: str, *, double: bool, device: Any) -> Neighbors:
    """Return lists of shape (rows, k) with only missing entries, into which lists over n points can be merged."""
    lists = empty_lists(rows, k, n, double=double, device=device)
    lists.distances.fill_(-float("inf") if get_metric(metric).descending else float("inf"))
    lists.indices.fill_(-1)
    return lists


def empty_lists(rows: int, k: int, n: int, *, double: bool, device: Any) -> Neighbors:
    """Return uninitialised tensors for the k nearest of n points to each of `rows` queries."""
    return Neighbors(
        torch.empty((rows, k), dtype=torch.float64 if double else torch.float32, device=device),
        torch.empty((rows, k), dtype=torch.int64 if index_dtype(n).itemsize == 8 else torch.int32, device=device),
    )


def merge_into(best: Neighbors, part: Neighbors, first: int, metric: str, device: Any) -> None:
    """Merge the lists found in a part of the points into `best`; the part begins at point number `first`.

    The lists are tensors on any device. They are merged on `device`, in blocks of rows that fit into MERGE_BYTES. The
    host waits for the device only if lists are in host memory.
    """
    k = best.indices.shape[1]
    block = max(1, MERGE_BYTES // (ENTRY_BYTES * (k + part.indices.shape[1])))
    for begin in range(0, len(best.indices), block):
        rows = slice(begin, begin + block)
        distances, ids = part.distances[rows].to(device), part.indices[rows].to(device, best.indices.dtype)
        ids = torch.where(ids < 0, ids, ids + first)
        so_far = best.distances[rows].to(device), best.indices[rows].to(device)
        best.distances[rows], best.indices[rows] = merge_lists(so_far, (distances, ids), k, metric=metric)


def _index_dtype(indices: Sequence[Any], shifts: Sequence[int]) -> Any:
    """Return int64 if the indices of a part are int64, or if an index with its offset needs int64; else int32."""
    wide = any(ids.dtype == torch.int64 for ids in indices)
    if not wide:
        ends = [ids.max().long() + 1 + shift for ids, shift in zip(indices, shifts, strict=True) if ids.numel()]
        wide = bool(ends) and index_dtype(int(torch.stack(ends).max())).itemsize == 8
    return torch.int64 if wide else torch.int32
