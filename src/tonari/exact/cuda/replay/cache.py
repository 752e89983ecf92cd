"""The cache of small searches, which are captured as CUDA graphs if they are repeated.

    first search with a key    the key is remembered
    second search              the search is captured (replay/capture.py); the least recently used graphs are evicted
    every later search         the graph is replayed

Searches of a few queries among prepared points are kept here too, as two launches without a graph (replay/few.py).

Two searches have the same key if they differ only in the values, addresses and strides of their rows. Planning and all
checks of arguments, except those of values, then have the same outcome, so a replay skips them. Public functions
therefore call :func:`replayed` first, and the method that searches makes the same key from checked tensors. This module
imports nothing that a search on the CPU does not need.
"""

from __future__ import annotations

import atexit
import math
import sys
import threading
import weakref
from collections.abc import Hashable
from typing import Any, Protocol, TypeAlias

import numpy as np

from tonari.core.process.caches import emptied_by
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.in_batches import IDLE

# The first item is a weak reference to the prepared points, or None if the points are not prepared.
GraphKey: TypeAlias = tuple[Hashable, ...]

CAPTURED = ("auto", "exact")  # only searches by these methods (argument `method`) are stored and replayed


class Graph(Protocol):
    """A stored search: a captured CUDA graph, or two launches without a graph."""

    nbytes: int

    def answer(self, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
        """Search with new values of the same shapes and dtypes, with any strides, on the current stream.

        Returns
        -------
        Neighbors of new tensors, or None
            None if the search must run step by step, because it raises an error or memory is short.
        """


def key_of(
    queries: Any, points: Any, k: Any, metric: Any, device: Any = "auto", *, self_join: bool = False
) -> GraphKey | None:
    """Return the key of a search among tensors on the CUDA device of the points; None for any other search."""
    ours, theirs = _facts(queries), _facts(points)
    if ours is None or theirs is None or not _is_whole(k) or type(metric) is not str:
        return None
    if type(device) is not str or (device not in ("auto", "cuda") and device != str(points.device)):
        return None
    return None, ours, theirs, k, metric, self_join


def key_on(prepared: Any, queries: Any, k: Any) -> GraphKey | None:
    """Return the key of a search among prepared points on CUDA; None for any other search.

    Queries may be in host memory only if the prepared points are on several devices.
    """
    ours = _facts(queries)
    if ours is None and getattr(prepared, "takes_host_queries", False) and type(queries) is np.ndarray:
        ours = queries.dtype, queries.shape
    return None if ours is None or not _is_whole(k) else (weakref.ref(prepared), ours, k)


def _facts(x: Any) -> tuple[Hashable, ...] | None:
    torch = sys.modules.get("torch")
    if torch is None or type(x) is not torch.Tensor or not x.is_cuda:
        return None
    return x.dtype, x.shape, x.device, x.layout


def _is_whole(k: Any) -> bool:
    """Whether k is an integer. Other values must not be part of a key, because 10.0 == 10 and True == 1."""
    return type(k) is int or isinstance(k, np.integer)


class Graphs:
    """A thread-safe cache of CUDA graphs by key, which evicts the least recently used graphs first.

    Parameters
    ----------
    most, held_bytes : int
        Maximum number of graphs, and maximum memory of all graphs together.
    """

    def __init__(self, most: int = tuning.MOST_GRAPHS, held_bytes: int = tuning.HELD_BYTES) -> None:
        self.most, self.held_bytes = most, held_bytes
        self._kept: dict[GraphKey, Graph] = {}
        self._watched: dict[GraphKey, Any] = {}
        # By key: how often a search without a graph was looked up; -inf once a caller has claimed it.
        self._seen: dict[GraphKey, float] = {}
        # Reentrant: the garbage collector may delete an Index and its graphs while this thread holds the lock.
        self._lock = threading.RLock()

    def get(self, key: GraphKey) -> Graph | None:
        """Return the graph of a key; if there is none, remember the search and return None."""
        with self._lock:
            graph = self._kept.pop(key, None)
            if graph is not None:
                self._kept[key] = graph
                return graph
            self._seen[key] = self._seen.pop(key, 0) + 1
            if len(self._seen) > tuning.REMEMBERED:
                del self._seen[next(iter(self._seen))]
            return None

    def claim(self, key: GraphKey) -> bool:
        """Return whether the caller has to capture the search of a key: True once, at the second search or later.

        If a claimed key has no graph, its capture is in progress or has failed.
        """
        with self._lock:
            if self._seen.get(key, 0) < 2:
                return False
            self._seen[key] = -math.inf
            return True

    def make_room(self, nbytes: int) -> None:
        """Evict the least recently used graphs until one more of `nbytes` bytes fits."""
        with self._lock:
            while self._kept and (len(self._kept) >= self.most or self.nbytes + nbytes > self.held_bytes):
                self.forget(next(iter(self._kept)))

    def put(self, key: GraphKey, graph: Graph) -> None:
        """Keep a graph until it is evicted, or until the prepared points that it searches are deleted."""
        owner: Any = key[0]
        alive = None if owner is None else owner()
        with self._lock:
            self.make_room(graph.nbytes)
            self._kept[key] = graph
            self._seen.pop(key, None)
            if alive is not None:
                self._watched[key] = weakref.ref(alive, lambda _: self.forget(key))

    def forget(self, key: GraphKey | None = None) -> bool:
        """Drop the graph of a key, or all graphs; return whether there were any.

        If another thread is replaying a graph, it is freed after the replay.
        """
        with self._lock:
            keys = list(self._kept) if key is None else [key]
            for one in keys:
                self._watched.pop(one, None)
                self._seen.pop(one, None)
            given_up = [self._kept.pop(one, None) for one in keys]
        return any(graph is not None for graph in given_up)

    def clear(self) -> None:
        """Drop all graphs and all remembered keys."""
        with self._lock:
            self.forget()
            self._seen.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of all graphs."""
        return sum(graph.nbytes for graph in self._kept.values())


GRAPHS = Graphs()
atexit.register(GRAPHS.forget)  # before CUDA is shut down
emptied_by(GRAPHS.clear)
IDLE.append(lambda: GRAPHS.forget())


def replayed(key: GraphKey | None, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
    """Answer a search by replaying the graph of its key; None if there is no graph, or if the graph cannot answer.

    Parameters
    ----------
    given : tensors
        Queries and points. A self-join has only points, and a search of prepared points has only queries.
    progress : None, bool or callable(done, total)
    """
    graph = None if key is None else GRAPHS.get(key)
    return None if graph is None else graph.answer(given, progress)
