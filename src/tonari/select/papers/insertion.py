"""Insertion queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-B (after Garcia, Nielsen and Barlaud 2010).

The queue is the k smallest values so far, in descending order. A value below the head replaces it: every larger entry
moves forward by one position. This takes O(k) writes for each of about k ln(n / k) insertions on random data, and all
rows of a warp access the same positions. The queue is good for small k, and of all queues it gains most from a buffer.
Figure 5 of the paper shows the number of its writes: the i-th value is written to the position of the j-th smallest
with probability min(1, j / i).
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
