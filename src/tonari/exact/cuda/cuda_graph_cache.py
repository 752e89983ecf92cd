"""Which searches are kept as CUDA graphs: a handful of small ones that were called for before.

    first call of its kind      is remembered
    second call                 is captured (replay.py); the graphs used least recently make room for it
    every later call            is replayed

Calls are of one kind if nothing but values, addresses and distances of rows tells them apart. All that is checked of
arguments, but for values, is the same in them, and so is the plan: a replay needs neither. Nothing is imported here
that a search on the CPU has no use for.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections.abc import Hashable
from typing import Any, Protocol, TypeAlias

import numpy as np

from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike

# Begins with a weak reference to the Index that is searched, or None.
Call: TypeAlias = tuple[Hashable, ...]

MOST_GRAPHS = 8
HELD_BYTES = 1 << 29  # of all devices together, by what is planned for each graph: no more than a plan leaves alone
REMEMBERED = 64  # calls without a graph


class Graph(Protocol):
    """A captured search."""

    nbytes: int

    def answer(self, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
        """The answer for other values, unless it takes more than the graph holds."""


def call_of(
    queries: Any, points: Any, k: Any, metric: Any, device: Any = "auto", *, self_join: bool = False
) -> Call | None:
    """The kind of a call that searches tensors on CUDA where they lie; None for all others."""
    ours, theirs = _facts(queries), _facts(points)
    if ours is None or theirs is None or not _is_whole(k) or type(metric) is not str:
        return None
    if type(device) is not str or (device not in ("auto", "cuda") and device != str(points.device)):
        return None
    return None, ours, theirs, k, metric, self_join


def call_on(index: Any, queries: Any, k: Any) -> Call | None:
    """The kind of a call that searches an Index with a tensor on CUDA; None for all others."""
    ours = _facts(queries)
    return None if ours is None or not _is_whole(k) else (weakref.ref(index), ours, k)


def _facts(x: Any) -> tuple[Hashable, ...] | None:
    torch = sys.modules.get("torch")
    if torch is None or type(x) is not torch.Tensor or not x.is_cuda:
        return None
    return x.dtype, x.shape, x.device, x.layout


def _is_whole(k: Any) -> bool:
    """Whether k is a number as a key tells numbers apart: 10.0 and True are equal to others."""
    return type(k) is int or isinstance(k, np.integer)


class Graphs:
    """Graphs by call, the least recently used first. Any thread may use it.

    Parameters
    ----------
    most, held_bytes : int
        How many graphs there are at most, and what they may hold together.
    """

    def __init__(self, most: int = MOST_GRAPHS, held_bytes: int = HELD_BYTES) -> None:
        self.most, self.held_bytes = most, held_bytes
        self._kept: dict[Call, Graph] = {}
        self._watched: dict[Call, Any] = {}
        self._seen: dict[Call, int] = {}
        # An Index may be collected, and its graphs with it, in the middle of what holds the lock.
        self._lock = threading.RLock()

    def get(self, call: Call) -> Graph | None:
        """The graph of a call, if there is one."""
        with self._lock:
            graph = self._kept.pop(call, None)
            if graph is not None:
                self._kept[call] = graph
            return graph

    def is_due(self, call: Call) -> bool:
        """Take note of a call without a graph; whether it is the second one, the time to capture it.

        Later ones are not due: capturing has failed then.
        """
        with self._lock:
            times = self._seen.pop(call, 0) + 1
            self._seen[call] = times
            if len(self._seen) > REMEMBERED:
                del self._seen[next(iter(self._seen))]
            return times == 2

    def make_room(self, nbytes: int) -> None:
        """Give up graphs until one more of `nbytes` keeps within the bounds."""
        with self._lock:
            while self._kept and (len(self._kept) >= self.most or self.nbytes + nbytes > self.held_bytes):
                self.forget(next(iter(self._kept)))

    def put(self, call: Call, graph: Graph) -> None:
        """Keep a graph, for no longer than the Index that it searches lives."""
        owner: Any = call[0]
        alive = None if owner is None else owner()
        with self._lock:
            self.make_room(graph.nbytes)
            self._kept[call] = graph
            if alive is not None:
                self._watched[call] = weakref.ref(alive, lambda _: self.forget(call))

    def forget(self, call: Call | None = None) -> bool:
        """Give up the graph of a call, or all graphs; whether there were any. What is in use lives until it is not."""
        with self._lock:
            calls = list(self._kept) if call is None else [call]
            for one in calls:
                self._watched.pop(one, None)
                self._seen.pop(one, None)
            given_up = [self._kept.pop(one, None) for one in calls]
        return any(graph is not None for graph in given_up)

    @property
    def nbytes(self) -> int:
        """What all graphs hold."""
        return sum(graph.nbytes for graph in self._kept.values())


GRAPHS = Graphs()
atexit.register(GRAPHS.forget)  # while CUDA is still there


def replayed(call: Call | None, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
    """The answer of a call of which there is a graph that can give it.

    Parameters
    ----------
    call : Call or None
    given : tensors
        Queries and points; only the points of a self-join, only the queries of an Index.
    progress : None, bool or callable(done, total)
    """
    graph = None if call is None else GRAPHS.get(call)
    return None if graph is None else graph.answer(given, progress)
