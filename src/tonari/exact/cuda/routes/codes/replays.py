"""Batches of searches by codes that are replayed as CUDA graphs."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import torch

from tonari.core.process.garbage import collection_off
from tonari.core.trail import decided
from tonari.cuda.devices import over
from tonari.cuda.recorded import record
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.in_batches import IDLE
from tonari.exact.cuda.routes.host_search import Sent
from tonari.exact.cuda.rows.pack import new_flags
from tonari.inputs.arrays.values import NO_ROW


class Replays:
    """A thread-safe cache of batches that are replayed as CUDA graphs; the sizes of a batch are in its key.

    The first batch with a key is launched step by step; the second one is captured.
    """

    def __init__(self) -> None:
        # None if only one batch was seen, or if the capture failed
        self._known: dict[tuple[Any, ...], Graph | None] = {}
        self._failed: set[tuple[Any, ...]] = set()
        self._lock = threading.Lock()
        _ALL.add(self)

    def graph(self, key: tuple[Any, ...], make: Callable[[], Graph]) -> Graph | None:
        """Return the CUDA graph for batches with this key; None for the first batch, or if the capture has failed.

        `make` captures the graph at the second batch."""
        with self._lock:
            if key not in self._known:
                self._known[key] = None
                while len(self._known) > tuning.REMEMBERED:
                    del self._known[next(iter(self._known))]
                return None
            graph = self._known.pop(key)
            if graph is None and key not in self._failed:
                self._drop_all_but(tuning.CODED_GRAPHS - 1)
                try:
                    graph = make()
                except (RuntimeError, MemoryError) as error:  # torch's out-of-memory error is a RuntimeError
                    decided("replay", f"searches like this one are launched step by step: {error}")
                    self._failed.add(key)
            self._known[key] = graph
            return graph

    def forget(self) -> bool:
        """Drop all CUDA graphs; return whether there were any."""
        with self._lock:
            return self._drop_all_but(0)

    def _drop_all_but(self, count: int) -> bool:
        kept = [key for key, graph in self._known.items() if graph is not None]
        for key in kept[: max(0, len(kept) - count)]:
            del self._known[key]
        return len(kept) > count


class Graph:
    """The steps of a batch, captured as a CUDA graph.

    Parameters
    ----------
    rows : tensor of shape (rows, d)
        Queries of the same number and dtype as in later batches.
    launch : callable(rows, flags)
        Launches the steps and returns the tensors of their results; `flags`, int64 (3,), is another output.
    """

    def __init__(self, rows: Any, launch: Callable[[Any, Any], tuple[Any, ...]]) -> None:
        self._lock, self._device = threading.Lock(), rows.device
        # Buffers created in inference mode could not be written to in any other mode. The capture would fail if the
        # garbage collector destroyed another graph.
        with torch.inference_mode(False), torch.no_grad(), collection_off():
            self._rows, self._flags = rows.clone(), new_flags(rows.device)

            def work() -> tuple[Any, ...]:
                self._flags.fill_(NO_ROW)
                return launch(self._rows, self._flags)

            self._graph, self._tensors = record(work, rows.device, run_first=True)
            self._used = torch.cuda.Event() if rows.device.type == "cuda" else None

    def launch(self, rows: npt.NDArray[Any]) -> Sent:
        """Launch the steps for other queries; flags refer to rows by their position in the batch."""
        # The lock and the event protect the buffers: another stream waits until the results have been copied.
        with self._lock, torch.inference_mode(False), torch.no_grad():
            if self._used is not None:
                self._used.wait()
            self._rows.copy_(over(rows).pin_memory() if self._used is not None else over(rows), non_blocking=True)
            self._graph.replay()
            sent = Sent(*self._tensors, self._flags)
            if self._used is not None:
                self._used.record()
        return sent


def captures(device: Any) -> bool:
    """Whether launches on a device can be captured as a CUDA graph."""
    return bool(device.type == "cuda")


_ALL: weakref.WeakSet[Replays] = weakref.WeakSet()


def _forget_replays() -> bool:
    if not any(list(_ALL)):
        return False
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    # Not any(), which would stop at the first cache that drops a graph.
    dropped = [replays.forget() for replays in list(_ALL)]
    return any(dropped)


atexit.register(_forget_replays)  # before CUDA is shut down
IDLE.append(_forget_replays)
