"""Order and merge lists of (returned value, id) pairs on a GPU.

A float32 value and an int32 id form one float64 key (``kernels/ordering/order.py``), so that any k-selection orders the
pairs. Pairs of float64 values or int64 ids are first sorted by id and then selected by value, because a selection
prefers the smaller column among equal values. Values of ``inner_product`` are negated first. No function of this module
waits for the device.
"""

from __future__ import annotations

from typing import Any

from tonari.cuda.launch import launch
from tonari.metrics import get_metric
from tonari.select import tuning
from tonari.select.cuda.dispatch import k_smallest

MERGE_BYTES = 64 << 20  # scratch memory for merging one block of rows
ENTRY_BYTES = 100  # maximum scratch per list entry during a merge: float64 values and int64 indices


def encode(distances: Any, indices: Any, metric: str, keys: Any) -> None:
    """Encode float32 distances and int32 indices, -1 where missing, as `keys`; all have the shape (rows, k)."""
    from tonari.select.cuda.kernels.ordering.order import encode_kernel

    entries = distances.numel()
    launch(
        encode_kernel,
        -(-entries // tuning.ORDER_BLOCK),
        {
            "distances_ptr": distances,
            "ids_ptr": indices,
            "keys_ptr": keys,
            "entries": entries,
            "columns": distances.shape[1],
            "distance_stride": distances.stride(0),
            "id_stride": indices.stride(0),
            "key_stride": keys.stride(0),
        },
        constants={"DESCENDING": get_metric(metric).descending, "BLOCK": tuning.ORDER_BLOCK},
        warps=tuning.ORDER_WARPS,
    )


def decode(keys: Any, metric: str) -> tuple[Any, Any]:
    """Return the float32 distances and int32 indices that contiguous keys encode."""
    import torch

    from tonari.select.cuda.kernels.ordering.order import decode_kernel

    distances = torch.empty(keys.shape, dtype=torch.float32, device=keys.device)
    indices = torch.empty(keys.shape, dtype=torch.int32, device=keys.device)
    entries = keys.numel()
    launch(
        decode_kernel,
        -(-entries // tuning.ORDER_BLOCK),
        {"keys_ptr": keys, "distances_ptr": distances, "ids_ptr": indices, "entries": entries},
        constants={"DESCENDING": get_metric(metric).descending, "BLOCK": tuning.ORDER_BLOCK},
        warps=tuning.ORDER_WARPS,
    )
    return distances, indices


def by_value(values: Any, ids: Any, k: int, metric: str) -> tuple[Any, Any]:
    """Select the k smallest of each row's values, and their ids; the columns of a row must be in order of id.

    The values, float64 or float32, ascend with distance. A missing entry has a negative id and the value inf. Returns
    distances of the dtype of the values, and the ids.
    """
    best, columns = k_smallest(values, k)
    return -best + 0.0 if get_metric(metric).descending else best, ids.gather(1, columns.long())


def merge_lists(a: tuple[Any, Any], b: tuple[Any, Any], k: int, *, metric: str) -> tuple[Any, Any]:
    """Merge two neighbour lists of each query into one list of the k nearest.

    Parameters
    ----------
    a, b : (distances, indices), tensors of shapes (rows, k_a) and (rows, k_b)
        Distances are float32 or float64, with the same dtype in both lists. Indices are int32 or int64, and -1 where
        missing. No index occurs twice in the two lists of a query. Columns are contiguous; rows may have any stride.
    k : int
        Columns of the result; may exceed the number of entries.

    Returns
    -------
    (distances, indices) of shape (rows, k)
        The k best by (distance, index), with distances descending for ``inner_product``; padded with inf (-inf) and -1.
        Indices are int64 if the indices of either list are.
    """
    import torch

    rows, left = a[1].shape
    entries = left + b[1].shape[1]
    columns = max(entries, k)
    device = a[0].device
    if a[0].dtype == torch.float32 and a[1].dtype == b[1].dtype == torch.int32:
        keys = torch.empty((rows, columns), dtype=torch.float64, device=device)
        keys[:, entries:] = float("inf")
        encode(*a, metric, keys)
        encode(*b, metric, keys[:, left:])
        return decode(k_smallest(keys, k).values, metric)
    missing = torch.iinfo(torch.int64).max
    ids = torch.full((rows, columns), missing, dtype=torch.int64, device=device)
    values = torch.full((rows, columns), float("inf"), dtype=a[0].dtype, device=device)
    sign = -1 if get_metric(metric).descending else 1
    for begin, (distances, indices) in ((0, a), (left, b)):
        here = slice(begin, begin + indices.shape[1])
        ids[:, here] = torch.where(indices < 0, missing, indices.long())
        values[:, here] = torch.where(indices < 0, float("inf"), sign * distances)
    ids, order = ids.sort(dim=1)
    distances, indices = by_value(values.gather(1, order), ids, k, metric)
    indices = torch.where(indices == missing, -1, indices)
    return distances, indices if torch.int64 in (a[1].dtype, b[1].dtype) else indices.int()
