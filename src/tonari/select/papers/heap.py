"""Heap queue: Tang, Huang, Eyers, Mills and Guo 2015, section III-B.

The k smallest so far form a binary heap with the largest at the root. A value below the root replaces it and sinks:
O(log k) writes for each of about k ln(n / k) insertions on random data. A heap has the fewest writes of the queues, but
the rows of a warp sink along different paths, so that loads are scattered; good for large k.
"""

from __future__ import annotations

from dataclasses import dataclass

from tonari.select.papers.queues import QueueOptions, select_with_queue
from tonari.select.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class Options(QueueOptions):
    """Options of ``method="heap"``: those of every queue."""


def select_on_gpu(request: Request) -> Answer:
    """Answer a request on the device that holds its values."""
    return select_with_queue(request, "heap", request.k)
