"""The counters of a search by the buffered traversal."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Rounds:
    """The totals of a search by the buffered traversal, over all threads or devices.

    Attributes
    ----------
    rounds : int
        The number of rounds: calls of the paper's FindLeafBatch, which finds the next leaves of queries.
    emptied : int
        The number of times that the buffers were emptied, by the paper's ProcessAllBuffers.
    full : int
        The number of times that the buffers were emptied because one was half full, not because the queues were empty.
    tiles : int
        The number of tiles: groups of queries that were compared with the points of a leaf together.
    compared : int
        The number of queries in all tiles. A query counts once for each leaf that it visited in rounds.
    walked : int
        The number of queries left to the walk at the end; 0 on the CPU.
    find_seconds, process_seconds : float
        Time of FindLeafBatch and of ProcessAllBuffers, summed over threads. On CUDA the host waits for the device at
        the end of each phase to measure them.
    sort_seconds : float
        Time of sorting the waiting queries by their leaves on CUDA; 0 on the CPU, where buffers are lists.
    """

    rounds: int = 0
    emptied: int = 0
    full: int = 0
    tiles: int = 0
    compared: int = 0
    walked: int = 0
    find_seconds: float = 0.0
    process_seconds: float = 0.0
    sort_seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **counted: float) -> None:
        """Add counts, passed by name, to the totals; any thread may call this method."""
        with self._lock:
            for name, value in counted.items():
                setattr(self, name, getattr(self, name) + value)
