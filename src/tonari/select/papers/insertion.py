"""Insertion queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-B (after Garcia, Nielsen and Barlaud 2010).

The queue holds the k smallest values so far, in descending order. A new value below the head drops the head: every
entry larger than the value moves forward by one position, and the value takes the free place. On random data there are
about k ln(n / k) insertions, each of which takes O(k) writes. All rows of a warp access the same positions. The queue
is good for small k, and of all queues it gains most from a buffer. Figure 5 of the paper shows the number of writes at
each position: the i-th value causes a write at the position of the j-th smallest value with probability min(1, j / i).
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.select.papers.queues import QueueOptions, select_with_queue
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options(QueueOptions):
    """Options of ``method="insertion"``: those of every queue."""


def select_on_gpu(request: Request) -> Answer:
    """Answer a request with insertion queues, on the device that holds its values."""
    return select_with_queue(request, "insertion", request.k)
