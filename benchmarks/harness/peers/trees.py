"""The library with which minimum spanning trees are compared: fast_hdbscan, in a separate process.

fast_hdbscan compiles in its first calls, so it is first run on a few thousand rows in its process. Its core distances
do not count the point itself, so it is called with min_samples - 1.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from .. import children

FAST_HDBSCAN = "fast_hdbscan"
_WARM_ROWS = 4096


def missing() -> str | None:
    """Return the reason why fast_hdbscan cannot run, or None."""
    return None if find_spec(FAST_HDBSCAN) else f"skipped: module {FAST_HDBSCAN!r} is not installed"


class FastHdbscan:
    """A process with float32 copies of points, which builds their spanning trees; a context manager."""

    def __init__(self, points: Any, min_samples: int, threads: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "points.npy"
        np.save(path, np.ascontiguousarray(points, dtype=np.float32))
        variables = children.blas_environment(threads, None) | {"NUMBA_NUM_THREADS": str(threads)}
        self._child = children.Child(_serve, str(path), min_samples, variables=variables)

    def build(self, rows: int) -> float:
        """Build the tree of the first `rows` points; return the sum of its weights."""
        return float(self._child.ask(rows))

    def __enter__(self) -> FastHdbscan:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()
        self._folder.cleanup()


def _serve(connection: Connection, path: str, min_samples: int) -> None:
    from fast_hdbscan.hdbscan import compute_minimum_spanning_tree

    points = np.load(path)
    compute_minimum_spanning_tree(points[:_WARM_ROWS], min_samples=min_samples - 1)
    while True:
        edges = compute_minimum_spanning_tree(points[: connection.recv()], min_samples=min_samples - 1)[0]
        connection.send(("reply", edges[:, 2].sum()))
