"""The libraries with which searches among sparse rows are compared.

``SPARSE_PEERS[name].prepare(points, task, threads)`` returns a function from queries, which are some of the points, to
the sorted values that the library finds for them: distances, or similarities in descending order. A
``RunningSparsePeer`` has a separate process, with exactly the given number of threads. sparse_dot_topn and similaripy
multiply rows of length 1.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import children
from .cpu import Array, limit_threads


class Task(NamedTuple):
    """A search by a metric for the k nearest rows or, if `min_similarity` is set, all rows at least that similar."""

    metric: str
    k: int
    min_similarity: float | None


Find = Callable[[Any], Array]


@dataclass(frozen=True)
class SparsePeer:
    """A library, and the function that prepares its searches."""

    name: str
    module: str
    metric: str
    prepare: Callable[[Any, Task, int], Find]

    def missing(self) -> str | None:
        """Return the reason why this peer cannot run, or None."""
        return None if find_spec(self.module) else f"{self.name} skipped: module {self.module!r} is not installed"


def _values(found: Any, k: int) -> Array:
    """Return the values in each row of a sparse matrix, in descending order and padded with 0 to shape (rows, k)."""
    found = found.tocsr()
    made = np.zeros((found.shape[0], k))
    for row in range(len(made)):
        values = np.sort(found.data[found.indptr[row] : found.indptr[row + 1]])[::-1]
        made[row, : len(values)] = values
    return made


def _prepare_sparse_dot_topn(points: Any, task: Task, threads: int) -> Find:
    from sparse_dot_topn import sp_matmul_topn

    columns = points.T.tocsr()
    options = {"top_n": task.k, "threshold": task.min_similarity, "sort": True, "n_threads": threads}
    return lambda queries: sp_matmul_topn(queries, columns, **options)


def _prepare_similaripy(points: Any, task: Task, threads: int) -> Find:
    import similaripy

    columns = points.T.tocsr()
    options = {"k": task.k, "threshold": task.min_similarity or 0.0, "num_threads": threads, "verbose": False}
    return lambda queries: similaripy.dot_product(queries, columns, **options)


def _prepare_sklearn(points: Any, task: Task, threads: int) -> Find:
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=task.k, algorithm="brute", metric=task.metric, n_jobs=threads).fit(points)

    def find(queries: Any) -> Array:
        with limit_threads(threads):
            distances: Array = index.kneighbors(queries)[0]
        return distances

    return find


SPARSE_PEERS = {
    peer.name: peer
    for peer in (
        SparsePeer("sparse_dot_topn", "sparse_dot_topn", "cosine", _prepare_sparse_dot_topn),
        SparsePeer("similaripy", "similaripy", "cosine", _prepare_similaripy),
        SparsePeer("sklearn", "sklearn", "", _prepare_sklearn),
    )
}


class Found(NamedTuple):
    """The seconds of the preparation (once per process), the seconds of the search, and the values found."""

    prepare_seconds: float
    seconds: float
    values: Array


def _serve(connection: Connection, name: str, path: str, task: Task, threads: int) -> None:
    from scipy.sparse import load_npz

    points = load_npz(path)
    peer = SPARSE_PEERS[name]
    # the first call imports the library and starts its threads
    peer.prepare(points[:64], task._replace(k=5), threads)(points[:1])
    start = time.perf_counter()
    find = peer.prepare(points, task, threads)
    prepared = time.perf_counter() - start
    while True:
        rows: int = connection.recv()
        queries = points[:rows]
        began = time.perf_counter()
        found = find(queries)
        seconds = time.perf_counter() - began
        values = found if isinstance(found, np.ndarray) else _values(found, task.k)
        connection.send(("reply", Found(prepared, seconds, values)))


class RunningSparsePeer:
    """A peer in its own process, with a copy of the points; a context manager."""

    def __init__(self, name: str, points: Any, task: Task, threads: int) -> None:
        from scipy.sparse import csr_matrix, save_npz

        self.name = name
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "points.npz")
        save_npz(path, csr_matrix(points), compressed=False)
        variables = children.blas_environment(threads, None)
        self._child = children.Child(_serve, name, str(path), task, threads, variables=variables)

    def find(self, rows: int) -> Found:
        """Search for the neighbours of the first `rows` points."""
        found: Found = self._child.ask(rows)
        return found

    def __enter__(self) -> RunningSparsePeer:
        return self

    def __exit__(self, *_: Any) -> None:
        self._child.close()
        self._folder.cleanup()
