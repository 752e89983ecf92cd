"""The common part of the queues of tang2015 on a GPU: their options, and the launch with one row per lane.

Tang, Huang, Eyers, Mills and Guo 2015, "Efficient Selection Algorithm for Fast k-NN Search on GPUs" (IPDPS). A queue
holds the k smallest values seen so far; its head is the largest of them, and only values below the head are inserted.
As in the paper, one thread handles one row: 32 rows per warp and program, with the queues in global memory. The
disadvantage is divergence: a warp takes the time of an insertion whenever any of its rows inserts. Buffered Search
(III-D) batches insertions, and Hierarchical Partition (III-E) skips most values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tonari.cuda.launch import launch
from tonari.select.cuda.hierarchical import build_lists, list_sizes
from tonari.select.cuda.keys import FORMATS, as_bits, constants_of, looks_for_nan
from tonari.select.cuda.survivors import Survivors, answer_from_survivors
from tonari.select.request import Answer, Counters, Request

# Ways to buffer insertions; kernels/buffered.py refers to each by its index in this tuple.
BUFFERS = ("none", "own", "full", "sorted")
QUEUES = ("insertion", "heap", "merge_queue")

LANES = 32
# Maximum bytes of lists, queues, buffers and counters in one launch; more rows take further launches.
SCRATCH_BYTES = 4 << 30


@dataclass(frozen=True, kw_only=True)
class QueueOptions:
    """Options of every queue.

    Attributes
    ----------
    buffer : "none", "own", "full" or "sorted"
        Buffered Search: when values below the head are inserted. "none": at once. "own": when the row's own buffer is
        full. "full": when the buffer of any of the rows that are processed together is full; these rows then empty
        their buffers in step. "sorted": as "full", but each buffer is sorted first.
    buffer_size : int
        The number of values that a row's buffer holds.
    group : int, optional
        The number of values per group of the Hierarchical Partition in front of the queue. Default: no partition.
    levels : int, optional
        The number of lists of minima. Default, and maximum: as many as it takes until a list has at most k entries.
    """

    buffer: str = "none"
    buffer_size: int = 16
    group: int | None = None
    levels: int | None = None

    def __post_init__(self) -> None:
        if self.buffer not in BUFFERS:
            raise ValueError(f"buffer={self.buffer!r}: expected one of {', '.join(BUFFERS)}")
        if self.buffer_size < 1:
            raise ValueError(f"buffer_size={self.buffer_size}: expected at least 1")
        if self.group is not None and self.group < 2:
            raise ValueError(f"group={self.group}: expected at least 2 values per group")
        if self.levels is not None and self.group is None:
            raise ValueError(f"levels={self.levels}: applies only together with group; pass group as well")
        if self.levels is not None and self.levels < 1:
            raise ValueError(f"levels={self.levels}: expected at least 1 list above the values")


def select_with_queue(request: Request, queue: str, size: int, m: int = 1, aligned: bool = False) -> Answer:
    """Answer a request with a queue of `size` >= k positions per row, on the device that holds the values.

    Parameters
    ----------
    queue : str
        One of QUEUES.
    m, aligned
        Options of ``method="merge_queue"``.
    """
    import torch

    from tonari.select.papers.kernels.lanes import UPDATES
    from tonari.select.papers.kernels.partition import queue_kernel

    options: QueueOptions = request.options
    form = FORMATS[request.dtype]
    bits = as_bits(request.values, request.dtype)
    n = bits.shape[1]
    group = min(options.group or n + 1, n + 1)
    sizes = [n] if options.group is None else list_sizes(n, request.k, group, options.levels)
    buffer_size = 0 if options.buffer == "none" else min(options.buffer_size, n + 1)
    slots = 0 if request.counters is None else UPDATES.value + size
    counted = torch.zeros(slots, dtype=torch.int64, device=bits.device)
    key_dtype = torch.int64 if form.wide else torch.int32

    def scratch(*shape: int, dtype: Any = torch.int32) -> Any:
        return torch.empty(shape, dtype=dtype, device=bits.device)

    def search(survivors: Survivors) -> None:
        rows = survivors.rows
        count = rows.stop - rows.start
        warps = -(-count // LANES)
        lists = scratch(count, sum(sizes[1:]), dtype=key_dtype)
        build_lists(request, rows, group, sizes, lists, survivors.nan_row)
        counts = torch.zeros((warps, slots, LANES), dtype=torch.int64, device=bits.device)
        launch(
            queue_kernel,
            warps,
            {
                "values_ptr": bits[rows],
                "lengths_ptr": None if request.lengths is None else request.lengths[rows],
                "lists_ptr": lists,
                "keys_ptr": scratch(warps, size, LANES, dtype=key_dtype),
                "indices_ptr": scratch(warps, size, LANES),
                "numbers_ptr": scratch(warps, size if len(sizes) > 1 else 0, LANES),
                "buffer_keys_ptr": scratch(warps, buffer_size, LANES, dtype=key_dtype),
                "buffer_indices_ptr": scratch(warps, buffer_size, LANES),
                "out_bits_ptr": survivors.bits,
                "out_indices_ptr": survivors.ids,
                "out_counts_ptr": survivors.counts,
                "nan_row_ptr": survivors.nan_row,
                "counts_ptr": counts,
                "first_row": rows.start,
                "rows": count,
                "n": n,
                "stride": bits.stride(0),
                "lists_stride": lists.stride(0),
                "top_start": sum(sizes[1:-1]),
                "group": group,
                "size": size,
                "buffer_size": buffer_size,
            },
            constants={
                **constants_of(request),
                "QUEUE": QUEUES.index(queue),
                "M": m,
                "ALIGNED": aligned,
                "BUFFER": BUFFERS.index(options.buffer),
                "LISTS": len(sizes) - 1,
                "CHECK_NAN": len(sizes) == 1 and looks_for_nan(request),
                "COUNT": request.counters is not None,
            },
            warps=1,
        )
        counted.add_(counts.sum(dim=(0, 2)))

    key_bytes = 8 if form.wide else 4
    row_bytes = key_bytes * sum(sizes[1:]) + (key_bytes + 4) * (2 * size + buffer_size) + 8 * slots
    step = max(1, SCRATCH_BYTES // (row_bytes * LANES)) * LANES

    def narrow(survivors: Survivors) -> None:
        for part in survivors.parts(step):
            search(part)

    answer = answer_from_survivors(request, size, narrow)
    if request.counters is not None:
        _fill(request.counters, counted.cpu().numpy(), queue)
    return answer


def _fill(counters: Counters, counted: Any, queue: str) -> None:
    """Copy the totals that the kernel has counted to the fields of `counters`."""
    from tonari.select.papers.kernels.lanes import EXAMINED, FLUSHES, MERGES, UPDATES

    counters.updates = counted[UPDATES.value :]
    counters.merges = int(counted[MERGES.value]) if queue == "merge_queue" else None
    counters.flushes = int(counted[FLUSHES.value])
    counters.examined = int(counted[EXAMINED.value])
    counters.lanes = LANES
