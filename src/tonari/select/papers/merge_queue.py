"""Merge queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-C and algorithm 2.

The queue has levels of m, m, 2m, 4m, ... entries. The entries of each level descend, and so do the heads of the levels,
so the first entry is the largest. A value is inserted into the first level. Levels are merged only when the head of one
becomes smaller than the head of the next (lazy update). This takes O(log² k) writes per insertion on average, at
positions that do not depend on the row. With the option ``aligned``, all rows of a warp merge as soon as one of them
must. The rows then merge at the same time, and the warp waits for fewer merges. The queue is good for large k on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.select.papers.queues import QueueOptions, select_with_queue
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options(QueueOptions):
    """Options of ``method="merge_queue"``: those of every queue, and two more.

    Attributes
    ----------
    m : int
        Size of the first two levels, a power of two. The queue has as many levels as k entries need.
    aligned : bool
        Whether all rows that are processed together merge their levels as soon as one of them must.
    """

    m: int = 8
    aligned: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m < 1 or self.m & (self.m - 1):
            raise ValueError(f"m={self.m}: expected a power of two")


def select_on_gpu(request: Request) -> Answer:
    """Answer a request with merge queues, on the device that holds its values."""
    m: int = request.options.m
    size = m
    while size < request.k:
        size *= 2
    return select_with_queue(request, "merge_queue", size, m, request.options.aligned)
