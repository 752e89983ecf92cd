"""Counters of a search by the buffered traversal."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Rounds:
    """Totals of a search by rounds, over all threads or devices.

    Attributes
    ----------
    rounds : int
        How often queries were moved on to their next leaves (FindLeafBatch of gieseke2014).
    emptied : int
        How often the buffers were emptied (ProcessAllBuffers).
    full : int
        How often because a buffer was half full; otherwise because no query was left in the queues.
    tiles : int
        Groups of queries of one leaf that were compared with its points together.
    compared : int
        Queries in those groups: every leaf that a query visited by rounds.
    walked : int
        Queries that were left to the walk at the end; 0 on the CPU.
    find_seconds, process_seconds : float
        Time of the two phases, summed over threads. On CUDA the device is waited for at the end of each if these are
        asked for.
    sort_seconds : float
        On CUDA, time of sorting the waiting queries by their leaves; on the CPU buffers are lists, and it is 0.
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
        """Add to these totals, from any thread."""
        with self._lock:
            for name, value in counted.items():
                setattr(self, name, getattr(self, name) + value)
