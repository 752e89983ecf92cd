"""`tonari.search_to_file`: the k nearest points of a stream of queries, written to a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonari import inputs, io
from tonari.api.index.index import Index
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.io._common import StrPath
from tonari.methods.options import ProgressOption, shares
from tonari.streams.chunks import Source
from tonari.streams.output import check_absent, check_unfinished
from tonari.streams.writing import write_neighbors

if TYPE_CHECKING:
    from typing_extensions import Unpack

SUFFIXES = (".ibin",)


@in_default_floats
@inputs.without_gradients("use tonari.search with differentiable=True")
@shares(ProgressOption)
def search_to_file(
    queries: Any,
    points: Any,
    k: int,
    out: StrPath,
    *,
    rows: int | None = None,
    chunk_rows: int | None = None,
    resume: bool = True,
    overwrite: bool = False,
    metric: str | None = None,
    weights: Any = None,
    VI: Any = None,
    covariance: Any = None,
    V: Any = None,
    transform: Any = None,
    method: str | None = None,
    device: str | Sequence[str] | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    **shared: Unpack[ProgressOption],
) -> Path:
    """Find the k nearest points of every query, and write them to a file as they are found.

    Three threads read, search and write at the same time: while one chunk is searched, the next one is read and the
    previous one is written. A stream takes as long as the slowest of the three steps, and needs memory for a few
    chunks.

    Parameters
    ----------
    queries : array of shape (m, d), path, or iterable of arrays of shape (any, d)
        A memory map, or a file that :func:`tonari.io.read` maps, is read chunk by chunk. A file of 0 bytes has no
        queries if its format stores the number of columns only in its rows (.fvecs, .bvecs, .ivecs, .csv, .tsv). An
        iterable is read on a thread of its own; its arrays may be of any kind that :func:`tonari.search` accepts, may
        have any number of rows, including 0, and may reuse one buffer.
    points : Index, array of shape (n, d), or path
        The points to search. An array or a file is first made into a :class:`tonari.Index`.
    k : int
        Neighbours per query, 1 to the number of points.
    out : path
        The output, in the ground-truth format of Big-ANN (.ibin): indices as int32, distances as float32 (float64
        distances are rounded). The file appears when it is complete. An existing file of this name is refused unless
        `overwrite` is True, since it does not record which search wrote it.
    rows : int, optional
        The exact number of queries; required for an iterable that is not a list.
    chunk_rows : int, optional
        Rows per chunk of an array or file. Default: 128 MiB of queries and results, or fewer if these would take more
        than about ten seconds.
    resume : bool
        Continue an interrupted run of the same search. False starts over.
    overwrite : bool
        Replace an existing file `out` when the new one is complete.
    metric, weights, VI, covariance, V, transform, method, device, threads, memory
        As for :class:`tonari.Index`. Refused if `points` is an Index, which has its own.
    progress : None, bool or callable(done, total)
        Counts queries. The bar shows their rate and the remaining time; None shows it on a terminal if the work takes
        more than two seconds.

    Returns
    -------
    Path
        The path of the file, which :func:`tonari.io.read_ground_truth` reads.

    Raises
    ------
    TypeError, ValueError
        As for :func:`tonari.search` (rows are numbered from the beginning of the stream) and, for files,
        :func:`tonari.io.read`; also if an iterable does not have `rows` rows, or the unfinished file is damaged or
        belongs to another search.
    BlockingIOError
        Another process is writing to `out`.
    FileExistsError
        `out` exists and `overwrite` is False, or `out` is not a regular file; or the unfinished file is a symbolic
        link, not a regular file, or has no journal.
    OSError
        The directory is missing or cannot be written to, the name is too long, or the disk is full.

    Notes
    -----
    Only one process can write to `out`. Until it is complete, the file is named ``OUT.part``, and ``OUT.part.json`` has
    the arguments of the search, the number of finished queries, and the record of the run. If a run ends early (an
    error in a later chunk, Ctrl-C, kill -9, a power cut), the same call continues it; only the current chunk and the
    chunks of the last fifth of a second are lost. An iterable is then read from its beginning, and finished queries are
    skipped. Points and finished queries are identified by a digest of 1,024 of their rows. After Ctrl-C, finished
    chunks are still written.

    At most two chunks of queries and two of results are in memory, in addition to the `memory` of each search. Chunks
    in host memory are copied to the `device` of the points, and their results are copied back. Points that do not fit
    on the device are searched slab by slab, as in any search.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> chunks = (np.full((2, 1), value, np.float32) for value in (0.2, 2.9))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = tonari.search_to_file(chunks, points, 1, pathlib.Path(folder, "found.ibin"), rows=4)
    ...     print(tonari.io.read_ground_truth(out).indices.ravel().tolist())
    [0, 0, 2, 2]
    """
    out = inputs.check_output_path(out, SUFFIXES)
    inputs.check_flag(overwrite, "overwrite")
    check_absent(out, overwrite=overwrite)
    check_unfinished(out)
    inputs.check_flag(resume, "resume")
    progress = inputs.check_progress(shared.get("progress"))
    source = Source(queries, rows=rows, chunk_rows=chunk_rows)
    if source.rows is None:
        raise ValueError("rows: the number of queries is needed if they are an iterable of chunks; give rows=")
    options = {"metric": metric, "weights": weights, "VI": VI, "covariance": covariance, "V": V, "transform": transform}
    options |= {"method": method, "device": device, "threads": threads, "memory": memory}
    index = _index(points, {name: value for name, value in options.items() if value is not None}, progress)
    write_neighbors(
        source,
        index,
        inputs.check_k(k, index.n, without_self=False),
        out,
        resume=resume,
        overwrite=overwrite,
        progress=progress,
    )
    return out


def _index(points: Any, options: dict[str, Any], progress: ProgressLike) -> Index:
    if isinstance(points, Index):
        if options:
            raise ValueError(f"{', '.join(options)}: are set by the Index; leave them out")
        index: Index = points._frozen()
        return index
    if isinstance(points, str | os.PathLike):
        points = io.read(points)
    return Index(points, progress=None if callable(progress) else progress, **options)
