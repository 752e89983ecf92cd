"""Heap queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-B.

The k smallest values so far form a binary heap with the largest at the root. A new value that is smaller replaces the
root and sinks to its place. On random data there are about k ln(n / k) insertions, each of which takes O(log k) writes.
Of all queues, a heap has the fewest writes, but the values of a warp's rows sink along different paths, so loads are
scattered. A heap is good for large k.
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.select.papers.queues import QueueOptions, select_with_queue
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options(QueueOptions):
    """Options of ``method="heap"``: those of every queue."""


def select_on_gpu(request: Request) -> Answer:
    """Answer a request with heap queues, on the device that holds its values."""
    return select_with_queue(request, "heap", request.k)
