"""Queries from anywhere, neighbours into a file: bounded memory, and a run that was cut off goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tonari import api, inputs, io
from tonari.core.floats import in_default_floats
from tonari.core.progress import ProgressLike
from tonari.io._common import StrPath
from tonari.streams.chunks import Source
from tonari.streams.journal import search_facts
from tonari.streams.output import Output, check_unfinished
from tonari.streams.pipeline import Flow
from tonari.streams.searching import answers, pace_of, progress_of

SUFFIXES = (".ibin",)


@in_default_floats
def search_to_file(
    queries: Any,
    points: Any,
    k: int,
    out: StrPath,
    *,
    rows: int | None = None,
    chunk_rows: int | None = None,
    resume: bool = True,
    metric: str | None = None,
    method: str | None = None,
    device: str | Sequence[str] | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> Path:
    """Find the k nearest points of every query, and write them to a file as they are found.

    Reading, searching and writing take turns on three threads: while one chunk is searched, the next is read and the
    last one is written. So a stream takes the time of the slowest of the three, and the memory of a few chunks.

    Parameters
    ----------
    queries : array of shape (m, d), path, or iterable of arrays of shape (*, d)
        A memory map and a file that :func:`tonari.io.read` maps are read chunk by chunk. An iterable is read on a
        thread of its own; its arrays may be of any kind that :func:`tonari.search` takes, of any number of rows, none
        included, and each may be the same buffer filled anew.
    points : Index, array of shape (n, d), or path
        An array or a file is prepared as :class:`tonari.Index` does.
    k : int
    out : path
        Big-ANN ground truth, .ibin: indices as int32, distances as float32 (float64 ones are rounded). Appears when
        all is done, and replaces an older file.
    rows : int, optional
        How many queries there are; needed for an iterable that is not a list, and then it has to be right.
    chunk_rows : int, optional
        Rows per chunk of an array or file. Default: 128 MiB of queries and results, or as many as are searched in
        about ten seconds if that is less.
    resume : bool
        Go on where an earlier run of the same search was cut off. False begins anew.
    metric, method, device, threads, memory
        As for :class:`tonari.Index`; an Index that is given has its own.
    progress : None, bool or callable(done, total)
        Counts queries. The bar shows their rate and the time to go; None shows it on a terminal when the work takes
        over two seconds.

    Returns
    -------
    Path of the file, which :func:`tonari.io.read_ground_truth` reads

    Raises
    ------
    TypeError, ValueError
        What :func:`tonari.search` refuses, naming rows by their place in the stream; an iterable with another number of
        rows; an unfinished file that is of another search, or damaged; and of files, what :func:`tonari.io.read`
        refuses.
    BlockingIOError
        Another process is writing to `out`.
    FileExistsError
        `out` is there and no regular file; or the unfinished file is, or is a symbolic link, or has no journal.
    OSError
        The directory is missing or cannot be written to, the name is too long, or the disk is full.

    Notes
    -----
    One process at a time may write to `out`. Until it is whole the file is ``OUT.part``, and ``OUT.part.json`` tells
    which search it is of and how many queries are done. Whatever ends a run (an error in a later chunk, Ctrl-C, kill
    -9, a power cut), the same call goes on from there; no more is lost than the chunk under way and the chunks of the
    last fifth of a second. An iterable is then read from its beginning, and what is done is passed over. Points, and
    the queries that are done, are known by a digest of 1,024 of their rows. Ctrl-C still writes what is finished.

    At a time two chunks of queries and two of results are held. `memory` is what each search may use beside them.
    Chunks in host memory go to the `device` of the points and their results come back; points that do not fit a
    device are the engine's to handle, as in any search.

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
    check_unfinished(out)
    inputs.check_flag(resume, "resume")
    progress = inputs.check_progress(progress)
    source = Source(queries, rows=rows, chunk_rows=chunk_rows)
    if source.rows is None:
        raise ValueError("rows: an iterable of chunks does not tell how many queries it holds; give rows=")
    given = {"metric": metric, "method": method, "device": device, "threads": threads, "memory": memory}
    index = _index(points, {name: value for name, value in given.items() if value is not None}, progress)
    k = inputs.check_k(k, index.n, without_self=False)
    search = search_facts(index, source.rows, k)
    with Output(out, search, source.rows, k, source.array, resume=resume) as output:
        _stream(source, index, k, output, progress)
        output.finish()
    return out


def _index(points: Any, options: dict[str, Any], progress: ProgressLike) -> api.Index:
    if isinstance(points, api.Index):
        if options:
            raise ValueError(f"{', '.join(options)}: an Index has its own; leave out what it was made with")
        return points
    if isinstance(points, str | os.PathLike):
        points = io.read(points)
    return api.Index(points, progress=None if callable(progress) else progress, **options)


def _stream(source: Source, index: api.Index, k: int, output: Output, progress: ProgressLike) -> None:
    pace = pace_of(index, source, k)
    with Flow() as flow, progress_of(progress, source.rows, output.rows) as bar:
        first = 0 if source.array is None else output.rows
        given = source.chunks(index.d, pace, flow, first=first)
        chunks = flow.ahead(output.to_do(given, first=first), "read", foreign=True)
        found = flow.ahead(answers(index, chunks, k, pace, flow, bar), "search")
        for _ in flow.ahead(output.written(found), "write"):
            pass
