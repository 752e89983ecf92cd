"""Insertion queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-B (after Garcia, Nielsen and Barlaud 2010).

The k smallest so far, in descending order. A value below the head drops the head and moves every larger entry forward
by one position: O(k) writes for each of about k ln(n / k) insertions on random data. The walk is the same for all rows
of a warp. Good for small k, and the queue that gains most from a buffer. Figure 5 of the paper shows its writes: the
position of the j-th smallest is written with probability min(1, j / i) at the i-th value.
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
