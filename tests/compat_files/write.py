"""Write files of this release for `tests/test_compat_files.py`: ``python -m tests.compat_files.write``.

They go into a folder that is named after the version. A folder of a released version never changes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tonari
from tonari.io.neighbors.found import write_found

FOLDER = Path(__file__).parent
K = 3
CHUNK = 8  # queries


class Stopped(Exception):
    """Raised to end a stream of queries before its last chunk."""


def points() -> np.ndarray:
    """Make rows of small whole numbers, which every machine computes alike."""
    at = np.arange(40)
    return np.stack([at % 7, at * at % 11, at // 3, at * 5 % 13], axis=1).astype(np.float32)


def queries() -> np.ndarray:
    """Make three chunks of rows that are not among the points."""
    return points()[: 3 * CHUNK] + np.float32(0.25)


def chunks(*, stop: bool) -> Iterator[np.ndarray]:
    """Yield the queries in chunks, or only the first two chunks and then raise an exception."""
    rows = queries()
    for begin in range(0, len(rows), CHUNK):
        if stop and begin == 2 * CHUNK:
            raise Stopped
        yield rows[begin : begin + CHUNK]


def changed_index() -> tonari.Index:
    """Make an index, remove points, and add points."""
    index = tonari.Index(points(), metric="cosine", device="cpu")
    index.remove([4, 17])
    index.add(points()[:3] + np.float32(0.5))
    return index


def mapped_index() -> tonari.Index:
    """Make an index whose rows are multiplied by a matrix."""
    return tonari.Index(points(), V=[1.0, 2.0, 3.0, 4.0], metric="seuclidean", device="cpu")


def write(folder: Path) -> None:
    """Write one file of each format into a folder, and create the folder."""
    folder.mkdir()
    graph = tonari.knn_graph(points(), K, device="cpu")
    graph.save(folder / "graph.npz")
    write_found(folder / "graph.hdf5", graph.indices, graph.distances, {})
    tonari.build_graph(points(), K, folder / "graph", device="cpu")
    changed_index().save(folder / "changed.index")
    mapped_index().save(folder / "mapped.index")
    size = len(queries())
    tonari.search_to_file(chunks(stop=False), points(), K, folder / "found.ibin", rows=size, device="cpu")
    try:
        tonari.search_to_file(chunks(stop=True), points(), K, folder / "stopped.ibin", rows=size, device="cpu")
    except Stopped:
        return
    raise AssertionError("the stream was not stopped")


if __name__ == "__main__":
    target = FOLDER / tonari.__version__
    if target.exists():
        shutil.rmtree(target)
    write(target)
    print(target)
