"""Hierarchical Partition without a queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-E and algorithm 4.

The first list has the minima of groups of G values, the second list has the minima of groups of G entries of the first
list, and so on until a list has at most k entries. The search goes from the last list down to the values: the k best
entries of a list identify the groups that contain the k best entries of the list below it. Values are read once to
build the lists; then at most k G entries of every list are read once more. The option ``group`` of a queue
(papers/queues.py) searches the same lists, with the queue at every step.

Groups have 32 values by default instead of the paper's 4. The lists then have n / 31 entries in total instead of n / 3,
and a warp reads a group at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.cuda.launch import launch
from tonari.select import tuning
from tonari.select.cuda.bitonic import answer_by_sort
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import (
    LARGEST_NETWORK,
    Survivors,
    answer_from_survivors,
    part_of,
    power_of_two,
    warps_for,
)
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of ``method="hierarchical"``.

    Attributes
    ----------
    group : int
        G, the group size: an entry of a list is the minimum of this many entries of the list below it.
    levels : int, optional
        The number of lists of minima. Default, and maximum: as many as it takes until a list has at most k entries.
    """

    group: int = 32
    levels: int | None = None

    def __post_init__(self) -> None:
        if self.group < 2:
            raise ValueError(f"group={self.group}: expected at least 2 values per group")
        if self.levels is not None and self.levels < 1:
            raise ValueError(f"levels={self.levels}: expected at least 1 list above the values")


def list_sizes(n: int, k: int, group: int, levels: int | None) -> list[int]:
    """Return the number of entries in each list, from the row of values up to the last list of minima.

    >>> list_sizes(100, 4, 5, None)
    [100, 20, 4]
    """
    sizes = [n]
    while sizes[-1] > k and (levels is None or len(sizes) <= levels):
        sizes.append(-(-sizes[-1] // group))
    return sizes


def select_on_gpu(request: Request) -> Answer:
    """Answer a request on the device of its values; whole rows are sorted if k is too large for a sorting network."""
    if request.k > LARGEST_NETWORK:
        return answer_by_sort(request)
    import torch

    from tonari.select.cuda.kernels.hierarchical import top_down_kernel

    form = FORMATS[request.dtype]
    bits = as_bits(request.values, request.dtype)
    n = bits.shape[1]
    group = min(request.options.group, n + 1)
    sizes = list_sizes(n, request.k, group, request.options.levels)
    # A top list of at most k entries rules out no group. It is never built, but the counters include its entries.
    whole_top = len(sizes) > 1 and sizes[-1] <= request.k
    if whole_top:
        sizes.pop()
    lists = len(sizes) - 1
    slots = max(tuning.LEAST_SLOTS, 4 * power_of_two(request.k))
    warps = min(16, 2 * warps_for(slots, form.wide))
    run = 2 if form.wide else 4
    key_dtype = torch.int64 if form.wide else torch.int32
    counters = request.counters
    examined: Any = None if counters is None else torch.zeros(1, dtype=torch.int64, device=bits.device)

    def narrow(survivors: Survivors) -> None:
        rows = survivors.rows
        count = rows.stop - rows.start
        entries = torch.empty((count, sum(sizes[1:])), dtype=key_dtype, device=bits.device)
        build_lists(request, rows, group, sizes, entries, survivors.nan_row)
        shape = (count if lists else 0, slots)
        launch(
            top_down_kernel,
            count,
            {
                "values_ptr": part_of(bits, rows),
                "lengths_ptr": part_of(request.lengths, rows),
                "lists_ptr": entries,
                "entries_ptr": torch.empty(shape, dtype=key_dtype, device=bits.device),
                "entry_ids_ptr": torch.empty(shape, dtype=torch.int32, device=bits.device),
                "groups_ptr": torch.empty(shape, dtype=torch.int32, device=bits.device),
                "slot_bits_ptr": survivors.bits,
                "slot_ids_ptr": survivors.ids,
                "counts_ptr": survivors.counts,
                "examined_ptr": examined,
                "nan_row_ptr": survivors.nan_row,
                "first_row": rows.start,
                "stride": bits.stride(0),
                "lists_stride": entries.stride(0),
                "n": n,
                "k": request.k,
                "lists": lists,
                "top": sum(sizes[1:-1]),
                "power": group**lists,
                "counted_top": int(whole_top),
            },
            constants={
                **constants_of(request),
                "COUNT": counters is not None,
                "CHECK_NAN": lists == 0 and looks_for_nan(request),
                "G": group,
                "A": slots // (2 * 32 * warps * run),
                "T": 32 * warps,
                "V": run,
            },
            warps=warps,
        )

    answer = answer_from_survivors(request, slots, narrow)
    if counters is not None:
        counters.examined = int(examined.item())
    return answer


def build_lists(request: Request, rows: slice, group: int, sizes: list[int], entries: Any, nan_row: Any) -> None:
    """Build the lists of minima of some rows, one after another in `entries`; one launch builds two lists if possible.

    Parameters
    ----------
    sizes : list of int
        The number of entries in each list, beginning with the row of values, which is not stored in `entries`.
    entries : tensor of shape (rows, sum(sizes[1:]))
        Output: the keys of the minima.
    """
    from tonari.select.cuda.kernels.hierarchical import minima_kernel

    form = FORMATS[request.dtype]
    width = min(tuning.BUILD_WIDTH, power_of_two(group))
    groups = tuning.BUILD_TILE // width
    level = start = 0  # index of the list that is read (0: the values), and position of its first entry
    while level + 1 < len(sizes):
        below = part_of(as_bits(request.values, request.dtype), rows) if level == 0 else entries[:, start:]
        above = start + sizes[level] if level > 0 else 0
        two = level + 2 < len(sizes) and group == width and groups % group == 0
        tiles = -(-sizes[level + 1] // groups)
        launch(
            minima_kernel,
            len(entries) * tiles,
            {
                "list_ptr": below,
                "lengths_ptr": part_of(request.lengths, rows),
                "next_ptr": entries[:, above:],
                "after_ptr": entries[:, above + sizes[level + 1] :],
                "nan_row_ptr": nan_row,
                "first_row": rows.start,
                "stride": below.stride(0),
                "out_stride": entries.stride(0),
                "n": request.values.shape[1],
                "power": group**level,
                "tiles": tiles,
            },
            constants={
                **constants_of(request),
                "CHECK_NAN": level == 0 and looks_for_nan(request),
                "VALUES": level == 0,
                "G": group,
                "GROUPS": groups,
                "WIDTH": width,
                "TWO": two,
            },
            warps=8 if form.wide else 4,
        )
        if two:
            start = above + sizes[level + 1]
            level += 2
        else:
            start = above
            level += 1
