"""Neighbour lists found over parts of the points become one, on the device that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tonari import arrays
from tonari.exact.gpu.places import on
from tonari.exact.gpu.refine import merge_lists
from tonari.metrics import get_metric
from tonari.results import Neighbors, index_dtype


def merge_on_device(parts: Sequence[Neighbors], shifts: Sequence[int], k: int, metric: str) -> Neighbors:
    """:func:`tonari.merge_neighbors` for checked lists of one device.

    One number is waited for, the largest index, since it decides how wide indices are.

    Returns
    -------
    Neighbors of shape (m, k), arrays of the library that the first part's distances are of
    """
    side = arrays.side_of(parts[0].distances, "part 0")
    lists = [tuple(arrays.as_tensor(array) for array in part) for part in parts]
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
        return Neighbors(*(arrays.hand_back(array[:, :k].contiguous(), side) for array in merged))


def _index_dtype(indices: Sequence[Any], shifts: Sequence[int]) -> Any:
    """int64 where a part has it or a shifted index needs it."""
    wide = any(ids.dtype == torch.int64 for ids in indices)
    if not wide:
        ends = [ids.max().long() + 1 + shift for ids, shift in zip(indices, shifts, strict=True) if ids.numel()]
        wide = bool(ends) and index_dtype(int(torch.stack(ends).max())).itemsize == 8
    return torch.int64 if wide else torch.int32
