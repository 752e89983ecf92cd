"""The libraries with which approximate graphs are compared: pynndescent on the CPU, cuVS's nn_descent on CUDA.

pynndescent compiles in its first calls. It is therefore run twice on a few thousand rows in its process, and the
difference of the two times is stored as ``compile_seconds``. It runs with as many threads as tonari. Its lists contain
the point itself, so k + 1 neighbours are requested. cuVS (see ``peers.cuda``) leaves its graph in host memory.
"""

from __future__ import annotations

import tempfile
import time
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from .. import children
from ..memory import Peak
from ..proof import without_self

PYNNDESCENT, CUVS = "pynndescent", "cuvs nn_descent"
MODULES = {PYNNDESCENT: "pynndescent", CUVS: "cuvs"}
WARM_ROWS = 4096
# cuVS's lists have 64 neighbours, more than any case requests, and 96 during the build: 1.5 times as many, as cuVS
# advises.
CUVS_DEFAULTS = {"graph_degree": 64, "intermediate_graph_degree": 96, "max_iterations": 10}


def missing(name: str) -> str | None:
    """Return the reason why a peer cannot run, or None."""
    module = MODULES[name]
    return None if find_spec(module) else f"skipped: module {module!r} is not installed"


class Pynndescent:
    """A process with float32 copies of points (NumPy), which builds graphs of them; a context manager."""

    def __init__(self, points: Any, threads: int) -> None:
        shared_memory = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None)
        path = Path(self._folder.name) / "points.npy"
        np.save(path, np.ascontiguousarray(points, dtype=np.float32))
        variables = children.blas_environment(threads, None) | {"NUMBA_NUM_THREADS": str(threads)}
        self._child = children.Child(_serve, str(path), threads, variables=variables)

    def warm(self, settings: dict[str, Any]) -> float:
        """Compile pynndescent's functions for these settings; return the seconds that this took."""
        return float(self._child.ask(("warm", settings)))

    def build(self, settings: dict[str, Any]) -> int | None:
        """Build the graph; return the peak memory of the build in bytes, not counting the points."""
        peak: int | None = self._child.ask(("build", settings))
        return peak

    def lists(self, rows: Any) -> Any:
        """Return the neighbours in `rows` of the last graph, without the point itself; -1 where one is missing."""
        indices = self._child.ask(("lists", rows))
        return without_self(indices, rows)

    def __enter__(self) -> Pynndescent:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()
        self._folder.cleanup()


def _serve(connection: Connection, path: str, threads: int) -> None:
    from pynndescent import NNDescent

    points = np.load(path)
    kept: Any = None

    def made(rows: Any, settings: dict[str, Any]) -> Any:
        return NNDescent(rows, metric="euclidean", n_jobs=threads, random_state=0, **settings).neighbor_graph[0]

    while True:
        verb, value = connection.recv()
        answer: Any
        if verb == "warm":
            seconds = []
            for _ in range(2):
                began = time.perf_counter()
                made(points[:WARM_ROWS], value)
                seconds.append(time.perf_counter() - began)
            answer = seconds[0] - seconds[1]
        elif verb == "build":
            kept = None
            peak = Peak("cpu")
            kept = made(points, value)
            answer = peak.bytes()
        else:
            answer = kept[value].astype(np.int64)
        connection.send(("reply", answer))


def first_pynndescent(path: str, settings: dict[str, Any], threads: int) -> None:
    """Import pynndescent, and build a graph of the points in a file; a new process runs this function."""
    from pynndescent import NNDescent

    made = NNDescent(np.load(path), metric="euclidean", n_jobs=threads, random_state=0, **settings)
    assert made.neighbor_graph is not None


def cuvs_graph(points: Any, settings: dict[str, Any]) -> Any:
    """Build cuVS's index of a tensor on the device; its graph, (n, graph_degree), is in host memory."""
    from cuvs.neighbors import nn_descent

    parameters = nn_descent.IndexParams(metric="sqeuclidean", **CUVS_DEFAULTS | settings)
    return nn_descent.build(parameters, points)


def cuvs_lists(index: Any, rows: Any) -> Any:
    """Return the neighbours in `rows` of the graph as int64, without the point itself."""
    indices = np.asarray(index.graph)[rows].astype(np.int64)
    return without_self(indices, rows)
