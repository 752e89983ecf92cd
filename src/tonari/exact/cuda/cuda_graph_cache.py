"""Which searches are kept as CUDA graphs: a handful of small ones that were asked for before.

    first search of a key      is remembered
    second search              is captured (cuda_graph_capture.py); the graphs used least recently make room for it
    every later search         is replayed

Searches have the same key if nothing but values, addresses and strides of rows tells them apart. Everything that is
checked of arguments, except values, is the same in them, and so is the plan: a replay needs neither. Therefore the
verbs look here first, by :func:`replayed`; the method that searches makes the same key from the checked tensors.
Nothing is imported here that a search on the CPU does not need.
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

# Begins with a weak reference to the prepared points that are searched, or None.
GraphKey: TypeAlias = tuple[Hashable, ...]

CAPTURED = ("auto", "exact")  # methods, as the caller names them, whose searches are looked up
MOST_GRAPHS = 8
HELD_BYTES = 1 << 29  # of all devices together, by what is planned for each graph: no more than a plan leaves alone
REMEMBERED = 64  # keys without a graph


class Graph(Protocol):
    """A captured search."""

    nbytes: int

    def answer(self, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
        """The answer for other values, unless it takes more than the graph holds."""


def key_of(
    queries: Any, points: Any, k: Any, metric: Any, device: Any = "auto", *, self_join: bool = False
) -> GraphKey | None:
    """The key of a search among tensors on CUDA, on their device; None for all others."""
    ours, theirs = _facts(queries), _facts(points)
    if ours is None or theirs is None or not _is_whole(k) or type(metric) is not str:
        return None
    if type(device) is not str or (device not in ("auto", "cuda") and device != str(points.device)):
        return None
    return None, ours, theirs, k, metric, self_join


def key_on(prepared: Any, queries: Any, k: Any) -> GraphKey | None:
    """The key of a search among prepared points with a tensor on CUDA; None for all others."""
    ours = _facts(queries)
    return None if ours is None or not _is_whole(k) else (weakref.ref(prepared), ours, k)


def _facts(x: Any) -> tuple[Hashable, ...] | None:
    torch = sys.modules.get("torch")
    if torch is None or type(x) is not torch.Tensor or not x.is_cuda:
        return None
    return x.dtype, x.shape, x.device, x.layout


def _is_whole(k: Any) -> bool:
    """Whether k is a number as a key tells numbers apart: 10.0 and True are equal to others."""
    return type(k) is int or isinstance(k, np.integer)


class Graphs:
    """Graphs by key, the least recently used first. Any thread may use it.

    Parameters
    ----------
    most, held_bytes : int
        How many graphs there are at most, and what they may hold together.
    """

    def __init__(self, most: int = MOST_GRAPHS, held_bytes: int = HELD_BYTES) -> None:
        self.most, self.held_bytes = most, held_bytes
        self._kept: dict[GraphKey, Graph] = {}
        self._watched: dict[GraphKey, Any] = {}
        self._seen: dict[GraphKey, int] = {}
        # An Index may be collected, and its graphs with it, in the middle of what holds the lock.
        self._lock = threading.RLock()

    def get(self, key: GraphKey) -> Graph | None:
        """The graph of a key, if there is one; if not, the search is taken note of."""
        with self._lock:
            graph = self._kept.pop(key, None)
            if graph is not None:
                self._kept[key] = graph
                return graph
            self._seen[key] = self._seen.pop(key, 0) + 1
            if len(self._seen) > REMEMBERED:
                del self._seen[next(iter(self._seen))]
            return None

    def is_due(self, key: GraphKey) -> bool:
        """Whether this is the second search of a key, the time to capture it.

        Later ones are not due: capturing has failed then.
        """
        with self._lock:
            return self._seen.get(key) == 2

    def make_room(self, nbytes: int) -> None:
        """Give up graphs until one more of `nbytes` keeps within the bounds."""
        with self._lock:
            while self._kept and (len(self._kept) >= self.most or self.nbytes + nbytes > self.held_bytes):
                self.forget(next(iter(self._kept)))

    def put(self, key: GraphKey, graph: Graph) -> None:
        """Keep a graph, for no longer than the prepared points that it searches live."""
        owner: Any = key[0]
        alive = None if owner is None else owner()
        with self._lock:
            self.make_room(graph.nbytes)
            self._kept[key] = graph
            self._seen.pop(key, None)
            if alive is not None:
                self._watched[key] = weakref.ref(alive, lambda _: self.forget(key))

    def forget(self, key: GraphKey | None = None) -> bool:
        """Give up the graph of a key, or all graphs; whether there were any. What is in use lives until it is not."""
        with self._lock:
            keys = list(self._kept) if key is None else [key]
            for one in keys:
                self._watched.pop(one, None)
                self._seen.pop(one, None)
            given_up = [self._kept.pop(one, None) for one in keys]
        return any(graph is not None for graph in given_up)

    @property
    def nbytes(self) -> int:
        """What all graphs hold."""
        return sum(graph.nbytes for graph in self._kept.values())


GRAPHS = Graphs()
atexit.register(GRAPHS.forget)  # while CUDA is still there


def replayed(key: GraphKey | None, given: tuple[Any, ...], progress: ProgressLike = None) -> Neighbors | None:
    """The answer to a search of whose key there is a graph that can give it.

    Parameters
    ----------
    key : GraphKey or None
    given : tensors
        Queries and points; only the points of a self-join, only the queries where points are prepared.
    progress : None, bool or callable(done, total)
    """
    graph = None if key is None else GRAPHS.get(key)
    return None if graph is None else graph.answer(given, progress)
