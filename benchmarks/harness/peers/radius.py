"""The libraries with which radius searches are compared: the counts of points for every query, and the time.

``RADIUS_PEERS[name].prepare(points, metric, threads)`` builds the peer's index and returns ``count(queries, radius)``.
A ``RunningRadiusPeer`` has a separate process, with exactly the given number of threads; OpenBLAS chooses its kernels
itself. faiss and sklearn make the lists, and only their lengths are returned; ckdtree counts.
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
from .cpu import POWERS, SCIKIT_METRICS, Array, limit_threads, unit_rows

Count = Callable[[Array, float], Array]


@dataclass(frozen=True)
class RadiusPeer:
    """A library, and the function that prepares its counts."""

    name: str
    module: str
    metrics: frozenset[str]
    prepare: Callable[[Array, str, int], Count]

    def missing(self) -> str | None:
        """Return the reason why this peer cannot run, or None."""
        return None if find_spec(self.module) else f"{self.name} skipped: module {self.module!r} is not installed"


def _prepare_faiss(points: Array, metric: str, threads: int) -> Count:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = (faiss.IndexFlatL2 if metric == "euclidean" else faiss.IndexFlatIP)(points.shape[1])
    index.add(unit_rows(points, centred=False) if metric == "cosine" else points)

    def count(queries: Array, radius: float) -> Array:
        rows = unit_rows(queries, centred=False) if metric == "cosine" else queries
        limit = radius**2 if metric == "euclidean" else 1 - radius
        limits, _, _ = index.range_search(rows, limit)
        return np.diff(limits.astype(np.int64))

    return count


def _prepare_sklearn(points: Array, metric: str, threads: int) -> Count:
    from sklearn.neighbors import NearestNeighbors

    settings = {"metric": SCIKIT_METRICS[metric], "p": POWERS.get(metric, 2.0), "n_jobs": threads}
    index = NearestNeighbors(algorithm="auto", **settings).fit(points)

    def count(queries: Array, radius: float) -> Array:
        with limit_threads(threads):
            _, found = index.radius_neighbors(queries, radius)
        return np.array([len(row) for row in found])

    return count


def _prepare_ckdtree(points: Array, metric: str, threads: int) -> Count:
    from scipy.spatial import cKDTree

    tree, order = cKDTree(points), {"l1": 1, "linf": np.inf}.get(metric, 2)

    def count(queries: Array, radius: float) -> Array:
        found: Array = tree.query_ball_point(queries, radius, p=order, return_length=True, workers=threads)
        return found

    return count


RADIUS_PEERS = {
    peer.name: peer
    for peer in (
        RadiusPeer("faiss", "faiss", frozenset({"euclidean", "cosine"}), _prepare_faiss),
        RadiusPeer("sklearn", "sklearn", frozenset(SCIKIT_METRICS), _prepare_sklearn),
        RadiusPeer("ckdtree", "scipy", frozenset({"euclidean", "l1", "linf"}), _prepare_ckdtree),
    )
}


class Asked(NamedTuple):
    """A request to count the points within `radius` of the first `rows` queries."""

    rows: int
    radius: float


class Counted(NamedTuple):
    """The seconds of building the index (once per process), the seconds of the count, and the counts."""

    prepare_seconds: float
    seconds: float
    counts: Array


def _serve(connection: Connection, name: str, points_path: str, queries_path: str, metric: str, threads: int) -> None:
    points, queries = np.load(points_path), np.load(queries_path)
    # the first call imports modules and starts threads
    RADIUS_PEERS[name].prepare(points[:256], metric, threads)(queries[:1], 0.0)
    start = time.perf_counter()
    count = RADIUS_PEERS[name].prepare(points, metric, threads)
    prepared = time.perf_counter() - start
    while True:
        asked: Asked = connection.recv()
        began = time.perf_counter()
        counts = count(queries[: asked.rows], asked.radius)
        connection.send(("reply", Counted(prepared, time.perf_counter() - began, counts)))


class RunningRadiusPeer:
    """A peer in its own process, with float32 copies of points and queries; a context manager."""

    def __init__(self, name: str, points: Array, queries: Array, metric: str, threads: int) -> None:
        self.name = name
        self._folder = tempfile.TemporaryDirectory()
        paths = [Path(self._folder.name) / file for file in ("points.npy", "queries.npy")]
        for path, rows in zip(paths, (points, queries), strict=True):
            np.save(path, rows)
        variables = children.blas_environment(threads, None)
        self._child = children.Child(_serve, name, *map(str, paths), metric, threads, variables=variables)

    def count(self, rows: int, radius: float) -> Counted:
        """Count the points within `radius` of the first `rows` queries."""
        found: Counted = self._child.ask(Asked(rows, radius))
        return found

    def __enter__(self) -> RunningRadiusPeer:
        return self

    def __exit__(self, *_: Any) -> None:
        self._child.close()
        self._folder.cleanup()
