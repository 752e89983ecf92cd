"""Order concatenated lists of different lengths by (value, id), and join lists of the same queries.

Short lists are sorted by sorting networks, several lists per program. The entries of all long lists are sorted together
by torch: first by (value, id), then stably by list, which keeps the order by (value, id) within each list. A value and
an id of 32 bits each are sorted as one integer of 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tonari.core.process.caches import cached
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.keys import FORMATS, as_bits
from tonari.select.cuda.survivors import warps_for

_LONG_ENTRY = 96  # scratch bytes per entry for sorting long lists: two copies each of position, key and sort order


def order_lists(begins: Any, counts: Any, values: Any, ids: Any, *, descending: bool) -> RadiusNeighbors:
    """Return lists concatenated in the order of their numbers, each sorted by (value, id). Waits for the device.

    Parameters
    ----------
    begins : int64 tensor of shape (m,)
        The first entry of each list in `values` and `ids`.
    counts : int32 or int64 tensor of shape (m,)
        The length of each list.
    values : float32 or float64 tensor
        Must not contain NaN, nor -0.0 unless `descending`, which returns -0.0 as 0.0.
    ids : int32 or int64 tensor
        Not negative, and distinct within each list.
    descending : bool
        Whether larger values come first; among equal values, ids ascend in either case.
    """
    import torch

    m, device = len(counts), counts.device
    indptr = torch.zeros(m + 1, dtype=torch.int64, device=device)
    torch.cumsum(counts, 0, dtype=torch.int64, out=indptr[1:])
    bounds = tuning.LIST_LENGTHS if ids.dtype == torch.int32 else ()
    lengths, of_each = _steps_on(device, bounds, counts.dtype)
    steps = torch.bucketize(counts, lengths, out_int32=True).to(torch.uint8)
    steps, numbers = torch.sort(steps, stable=True)
    ends = torch.searchsorted(steps, of_each, right=True)
    first, *ends, total = torch.cat([ends, indptr[-1:]]).tolist()
    found = RadiusNeighbors(
        indptr,
        torch.empty(total, dtype=ids.dtype, device=device),
        torch.empty(total, dtype=values.dtype, device=device),
    )
    for length, end in zip(bounds, ends, strict=False):  # the first class contains empty lists, which need no sorting
        if end > first:
            _order_short(begins, counts, values, ids, numbers[first:end], length, descending, found)
        first = end
    if m > first:
        _order_long(begins, counts, values, ids, numbers[first:], descending, found)
    return found


@cached(maxsize=16)
def _steps_on(device: Any, bounds: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Return the lengths that bound the classes of lists, and the class indices 0, 1, 2, ..., as tensors on a device.

    Lists of a class are sorted by the same kernel. Copying the bounds makes the host wait, but only at the first call.
    """
    import torch

    return torch.tensor([0, *bounds], dtype=dtype, device=device), torch.arange(
        len(bounds) + 2, dtype=torch.uint8, device=device
    )


def join_parts(parts: Sequence[RadiusNeighbors], *, descending: bool) -> RadiusNeighbors:
    """Join the lists of the same queries from several parts of the points, all on one device, into one list per query.

    The ids must already be row numbers among all points, not within a part.

    Waits for the device.
    """
    import torch

    if len(parts) == 1:
        return parts[0]
    lengths = [part.indptr.diff() for part in parts]
    counts = torch.stack(lengths).sum(0)
    begins = counts.cumsum(0) - counts
    values = torch.cat([part.distances for part in parts])
    ids = torch.cat([part.indices for part in parts])
    joined = torch.empty_like(values), torch.empty_like(ids)
    taken, behind = begins.clone(), 0
    for part, length in zip(parts, lengths, strict=True):
        size = len(part.indices)
        shifts = torch.repeat_interleave(taken - part.indptr[:-1], length, output_size=size)
        places = shifts + torch.arange(size, device=shifts.device)
        for out, of_parts in zip(joined, (values, ids), strict=True):
            out[places] = of_parts[behind : behind + size]
        taken += length
        behind += size
    return order_lists(begins, counts, *joined, descending=descending)


def one_after_another(parts: Sequence[RadiusNeighbors]) -> RadiusNeighbors:
    """Concatenate the results of successive blocks of queries, all on one device."""
    import torch

    if len(parts) == 1:
        return parts[0]
    lengths = torch.cat([part.indptr.diff() for part in parts])
    indptr = torch.zeros(len(lengths) + 1, dtype=torch.int64, device=lengths.device)
    torch.cumsum(lengths, 0, out=indptr[1:])
    return RadiusNeighbors(
        indptr, torch.cat([part.indices for part in parts]), torch.cat([part.distances for part in parts])
    )


def moved(found: RadiusNeighbors, device: Any) -> RadiusNeighbors:
    """Return a copy of the lists on another device; tensors that are already on this device are not copied."""
    return RadiusNeighbors(*(part.to(device) for part in found))


def _order_short(
    begins: Any, counts: Any, values: Any, ids: Any, numbers: Any, length: int, descending: bool, found: RadiusNeighbors
) -> None:
    from tonari.select.cuda.kernels.ordering.ragged import order_lists_kernel

    dtype = "float64" if values.element_size() == 8 else "float32"
    form = FORMATS[dtype]
    size = max(tuning.LIST_ENTRIES, length)
    launch(
        order_lists_kernel,
        -(-len(numbers) // (size // length)),
        {
            "bits_ptr": as_bits(values, dtype),
            "ids_ptr": ids,
            "begins_ptr": begins,
            "counts_ptr": counts,
            "numbers_ptr": numbers,
            "places_ptr": found.indptr,
            "out_bits_ptr": as_bits(found.distances, dtype),
            "out_ids_ptr": found.indices,
            "lists": len(numbers),
        },
        constants={
            "INFINITE": form.infinite,
            "LARGEST": descending,
            "WIDE": form.wide,
            "LENGTH": length,
            "N": size,
        },
        warps=warps_for(size, form.wide),
    )


def _order_long(
    begins: Any, counts: Any, values: Any, ids: Any, numbers: Any, descending: bool, found: RadiusNeighbors
) -> None:
    """Sort the long lists, in batches that fit the scratch memory. Waits for the device."""
    import torch

    lengths = counts[numbers].long()
    ends = np.cumsum(lengths.cpu().numpy())
    most = max(1, tuning.LONG_LIST_BYTES // _LONG_ENTRY)
    top, before = 0, 0
    while top < len(numbers):
        stop = max(top + 1, int(np.searchsorted(ends, before + most, side="right")))
        rows, size, here = numbers[top:stop], int(ends[stop - 1]) - before, lengths[top:stop]
        list_numbers = torch.arange(stop - top, device=ids.device)
        of = torch.repeat_interleave(list_numbers, here, output_size=size)
        # The place of each entry in the output, and in the input; a list is contiguous in both.
        place = torch.arange(size, device=ids.device) + (found.indptr[rows] - (here.cumsum(0) - here))[of]
        at = place + (begins[rows] - found.indptr[rows])[of]
        found.indices[place], found.distances[place] = _in_order(
            values[at], ids[at], of.to(_least_dtype(stop - top)), descending
        )
        top, before = stop, int(ends[stop - 1])


def _least_dtype(count: int) -> Any:
    """Return the smallest integer dtype for numbers below `count`, because a radix sort takes one pass per byte."""
    import torch

    return torch.uint8 if count <= 1 << 8 else torch.int16 if count <= 1 << 15 else torch.int32


def _in_order(values: Any, ids: Any, of: Any, descending: bool) -> tuple[Any, Any]:
    """Sort each list by (value, id), and return ids and values; `of`, ascending, is the index of an entry's list."""
    import torch

    values = 0 - values if descending else values
    if values.element_size() == 4 and ids.dtype == torch.int32:
        bits = values.view(torch.int32)
        bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the order of the values
        keys, order = torch.sort(bits.long() << 32 | ids)
        keys = keys[torch.sort(of[order], stable=True).indices]
        bits = (keys >> 32).int()
        ids, values = (keys & 0x7FFFFFFF).int(), (bits ^ ((bits >> 31) & 0x7FFFFFFF)).view(torch.float32)
    else:
        order = torch.sort(ids).indices
        order = order[torch.sort(values[order], stable=True).indices]
        order = order[torch.sort(of[order], stable=True).indices]
        ids, values = ids[order], values[order]
    return ids, 0 - values if descending else values
