"""Neighbours in the file formats of other programs: HDF5, Parquet and Arrow, and text with one edge per line.

.hdf5 .h5          datasets neighbors and distances, as ann-benchmarks names them
.parquet .arrow    columns of lists, indices and distances
.csv .tsv          a line for each pair: from, to, distance; no line for a missing neighbour (-1)
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tonari.io._atomic import atomic
from tonari.io._common import Array, pieces
from tonari.io.formats import hdf5
from tonari.io.tables import arrow
from tonari.io.tables.text import SEPARATORS

ARROW_SUFFIXES = (".parquet", ".arrow")
SUFFIXES = (".hdf5", ".h5", *ARROW_SUFFIXES, *SEPARATORS)


def check_writable(path: Path) -> None:
    """Raise ImportError, before any work, if the library that writes the format of `path` is not installed."""
    suffix = path.suffix.lower()
    if suffix in ARROW_SUFFIXES:
        arrow.pyarrow()
    elif suffix in SUFFIXES and suffix not in SEPARATORS:
        hdf5.library()


def write_found(
    path: Path,
    indices: Array,
    distances: Array,
    about: Mapping[str, Any],
    *,
    names: tuple[Array | None, Array | None] = (None, None),
) -> None:
    """Write neighbours, atomically; an existing file is replaced.

    Parameters
    ----------
    path : Path
        Its suffix, one of `SUFFIXES`, names the format.
    indices, distances : arrays of shape (n, k)
        NumPy arrays.
    about : mapping
        Properties of the search as JSON values, such as the metric; stored in Parquet and Arrow files. HDF5 files store
        only "filters", names of arguments that restricted the neighbours.
    names : pair of arrays, optional
        The names of the rows of `indices`, and the names of all points; None for row numbers. In text files they
        replace row numbers; Parquet and Arrow files store them in additional columns, ``id`` and ``ids``; HDF5 files
        cannot store them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from tonari.io.neighbors.found import write_found
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "edges.csv")
    ...     write_found(path, np.array([[1], [-1]]), np.array([[0.1], [np.inf]], np.float32), {})
    ...     print(path.read_text().split())
    ['from,to,distance', '0,1,0.1']
    """
    suffix = path.suffix.lower()
    if suffix in SEPARATORS:
        _write_edges(path, indices, distances, SEPARATORS[suffix], names)
    elif suffix in ARROW_SUFFIXES:
        arrow.write_neighbors(path, indices, distances, about, names)
    else:
        filters = about.get("filters")
        noted = {hdf5.FILTERS: ",".join(filters)} if filters else {}
        hdf5.write_datasets(path, {"neighbors": indices, "distances": distances}, noted)


def _write_edges(
    path: Path, indices: Array, distances: Array, separator: str, names: tuple[Array | None, Array | None]
) -> None:
    queries, points = names
    with atomic(path) as file:
        file.write((separator.join(("from", "to", "distance")) + "\n").encode())
        for start, near in pieces(indices):
            rows, places = np.nonzero(near >= 0)
            far = np.asarray(distances[start : start + len(near)])[rows, places]
            # astype(str) below writes the fewest digits that identify a distance in its own dtype.
            ends = ((rows + start, queries), (near[rows, places], points))
            i, j = ((at if of is None else of[at]).tolist() for at, of in ends)
            lines = io.StringIO()
            parts = zip(i, j, far.astype(str).tolist(), strict=True)
            csv.writer(lines, delimiter=separator, lineterminator="\n").writerows(parts)
            file.write(lines.getvalue().encode())
