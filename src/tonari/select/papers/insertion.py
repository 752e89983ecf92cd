"""Insertion queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-B (after Garcia, Nielsen and Barlaud 2010).

The queue is the k smallest values so far, in descending order. A value below the head replaces it: every larger entry
moves forward by one position. On random data there are about k ln(n / k) insertions, each of which takes O(k) writes.
All rows of a warp access the same positions. The queue is good for small k, and of all queues it gains most from a
buffer. Figure 5 of the paper shows the number of writes: the i-th value causes a write at the position of the j-th
smallest value with probability min(1, j / i).
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.select.papers.queues import QueueOptions, select_with_queue
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options(QueueOptions):
    """Options of ``method="insertion"``: those of every queue."""


def select_on_gpu(request: Request) -> Answer:
    """Answer a request on the device that holds its values."""
    return select_with_queue(request, "insertion", request.k)
