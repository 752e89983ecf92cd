"""The libraries with which tonari is compared on a CPU, with one interface.

``PEERS[name].prepare(points, metric, threads)`` builds the peer's index and returns ``search(queries, k)``, which gives
``(distances, indices)``: distances in tonari's meaning (true L2 for euclidean, 1 - similarity for cosine and
correlation, similarity for inner_product), best first. ``PEERS[name].missing()`` is the reason why the peer cannot run
here, or None. All take float32. faiss and sklearn call BLAS; pykdtree and ckdtree (SciPy's, which stores float64) are
k-d trees with the default sizes of their leaves.

For a fair comparison, a ``RunningPeer`` has a separate process, exactly the given number of threads (``machine.pin``
also restricts it to as many processors), and the OpenBLAS kernels that a measurement finds to be the fastest.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import children

Array = npt.NDArray[Any]
Search = Callable[[Array, int], tuple[Array, Array]]


@dataclass(frozen=True)
class Peer:
    """A library, the metrics that it supports, and the function that prepares its searches."""

    name: str
    module: str
    metrics: frozenset[str]
    prepare: Callable[[Array, str, int], Search]

    def missing(self) -> str | None:
        """Return the reason why this peer cannot run, or None."""
        return None if find_spec(self.module) else f"{self.name} skipped: module {self.module!r} is not installed"


def limit_threads(threads: int) -> contextlib.AbstractContextManager[Any]:
    """Set every BLAS and OpenMP pool of the process to ``threads``, if threadpoolctl is installed."""
    if find_spec("threadpoolctl") is None:
        return contextlib.nullcontext()
    from threadpoolctl import threadpool_limits

    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(limits=threads)
    return limits


def unit_rows(rows: Array, *, centred: bool) -> Array:
    """Return float32 rows divided by their norms (zero rows stay), with each row's mean subtracted if ``centred``."""
    if centred:
        rows = rows - rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Array = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit


def _prepare_faiss(points: Array, metric: str, threads: int) -> Search:
    import faiss

    def rows(array: Array) -> Array:
        return unit_rows(array, centred=metric == "correlation") if metric in ("cosine", "correlation") else array

    faiss.omp_set_num_threads(threads)
    euclidean = metric in ("euclidean", "sqeuclidean")
    index = (faiss.IndexFlatL2 if euclidean else faiss.IndexFlatIP)(points.shape[1])
    index.add(rows(points))

    def search(queries: Array, k: int) -> tuple[Array, Array]:
        with limit_threads(threads):
            faiss.omp_set_num_threads(threads)
            values, indices = index.search(rows(queries), k)
        if metric == "euclidean":
            np.sqrt(values, out=values)
        elif metric in ("cosine", "correlation"):
            np.subtract(1, values, out=values)
        return values, indices

    return search


def _prepare_panorama(points: Array, metric: str, threads: int) -> Search:
    # FAISS's exact index for single queries: it reads the first principal components of all points, and further
    # components only of points that may still be near.
    import faiss

    faiss.omp_set_num_threads(threads)
    d = points.shape[1]
    index = faiss.index_factory(d, f"PCA{d},FlatL2Panorama8_512")
    index.train(points)
    index.add(points)

    def search(queries: Array, k: int) -> tuple[Array, Array]:
        with limit_threads(threads):
            faiss.omp_set_num_threads(threads)
            squares, indices = index.search(queries, k)
        if metric == "euclidean":
            np.sqrt(np.maximum(squares, 0, out=squares), out=squares)  # rounding can make squares negative
        return squares, indices

    return search


SCIKIT_METRICS = {
    "euclidean": "euclidean",
    "sqeuclidean": "sqeuclidean",
    "cosine": "cosine",
    "l1": "manhattan",
    "linf": "chebyshev",
    "minkowski:3": "minkowski",
}
POWERS = {"minkowski:3": 3.0}  # the metrics for which scikit-learn needs its argument p


def _prepare_sklearn(points: Array, metric: str, threads: int) -> Search:
    from sklearn.neighbors import NearestNeighbors

    settings = {"metric": SCIKIT_METRICS[metric], "p": POWERS.get(metric, 2.0), "n_jobs": threads}
    index = NearestNeighbors(algorithm="brute", **settings).fit(points)

    def search(queries: Array, k: int) -> tuple[Array, Array]:
        with limit_threads(threads):
            distances, indices = index.kneighbors(queries, n_neighbors=k)
        return distances, indices

    return search


def _prepare_pykdtree(points: Array, metric: str, threads: int) -> Search:
    # pykdtree uses OMP_NUM_THREADS threads; the variable was set when this process started.
    from pykdtree.kdtree import KDTree

    tree = KDTree(points)

    def search(queries: Array, k: int) -> tuple[Array, Array]:
        distances, indices = tree.query(queries, k, sqr_dists=metric == "sqeuclidean")
        # for k = 1, pykdtree returns one-dimensional arrays
        return distances.reshape(len(queries), k), indices.reshape(len(queries), k).astype(np.int64)

    return search


def _prepare_ckdtree(points: Array, metric: str, threads: int) -> Search:
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    order = {"l1": 1, "linf": np.inf}.get(metric, 2)

    def search(queries: Array, k: int) -> tuple[Array, Array]:
        # a list of ranks instead of k, so that results have two dimensions for k = 1 too
        distances, indices = tree.query(queries, list(range(1, k + 1)), p=order, workers=threads)
        return distances, indices

    return search


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "faiss",
            "faiss",
            frozenset({"euclidean", "sqeuclidean", "cosine", "correlation", "inner_product"}),
            _prepare_faiss,
        ),
        Peer("panorama", "faiss", frozenset({"euclidean", "sqeuclidean"}), _prepare_panorama),
        Peer("sklearn", "sklearn", frozenset(SCIKIT_METRICS), _prepare_sklearn),
        Peer("pykdtree", "pykdtree", frozenset({"euclidean", "sqeuclidean"}), _prepare_pykdtree),
        Peer("ckdtree", "scipy", frozenset({"euclidean", "l1", "linf"}), _prepare_ckdtree),
    )
}


class Request(NamedTuple):
    """A request to search queries ``start`` to ``stop - 1``.

    With ``single``, each query is a call of its own; with ``prepared``, the index is kept.
    """

    start: int
    stop: int
    k: int
    single: bool
    prepared: bool


class Reply(NamedTuple):
    """The seconds to build the index (0 if it existed), the seconds of all search calls, and their results."""

    prepare_seconds: float
    search_seconds: float
    distances: Array
    indices: Array


def _serve(connection: Connection, name: str, points_path: str, queries_path: str, metric: str, threads: int) -> None:
    points, queries = np.load(points_path), np.load(queries_path)
    kept: Search | None = None
    while True:
        request: Request = connection.recv()
        start = time.perf_counter()
        search = kept or PEERS[name].prepare(points, metric, threads)
        prepared = time.perf_counter()
        rows = queries[request.start : request.stop]
        calls = [rows[i : i + 1] for i in range(len(rows))] if request.single else [rows]
        began = time.perf_counter()
        answers = [search(call, request.k) for call in calls]
        ended = time.perf_counter()
        kept = search if request.prepared else None
        distances = np.concatenate([answer[0] for answer in answers])
        indices = np.concatenate([answer[1] for answer in answers])
        connection.send(("reply", Reply(prepared - start, ended - began, distances, indices)))
        del search


class RunningPeer:
    """A peer in its own process, with float32 copies of ``points`` and ``queries``; a context manager."""

    def __init__(
        self, name: str, points: Array, queries: Array, metric: str, threads: int, blas_core: str | None
    ) -> None:
        self.name = name
        shared_memory = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None)
        paths = [Path(self._folder.name) / file for file in ("points.npy", "queries.npy")]
        for path, rows in zip(paths, (points, queries), strict=True):
            np.save(path, np.ascontiguousarray(rows, dtype=np.float32))
        self._child = children.Child(
            _serve, name, *map(str, paths), metric, threads, variables=children.blas_environment(threads, blas_core)
        )

    def search(self, request: Request) -> Reply:
        """Send a request to the process and wait for its reply."""
        reply: Reply = self._child.ask(request)
        return reply

    def __enter__(self) -> RunningPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()
        self._folder.cleanup()


@functools.cache
def fastest_blas_core(name: str, threads: int) -> str | None:
    """Return the OpenBLAS kernels with which a peer searches fastest.

    The trial has 4096 queries among 20,000 points of 128 dimensions.
    """
    rows = np.random.default_rng(0).standard_normal((20_000, 128), dtype=np.float32)
    seconds: dict[str | None, float] = {}
    for core in children.blas_cores():
        with RunningPeer(name, rows, rows[:4096], "euclidean", threads, core) as peer:
            request = Request(0, 4096, 10, single=False, prepared=True)
            seconds[core] = min(peer.search(request).search_seconds for _ in range(3))
    return min(seconds, key=seconds.__getitem__)
