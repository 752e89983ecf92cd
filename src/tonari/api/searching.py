"""`tonari.search` and `tonari.search_to_file`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tonari import inputs, io
from tonari.api.changed import on_changed_rows
from tonari.api.differentiable import carries
from tonari.api.filtered import refuse_plan, search_allowed
from tonari.api.index import Index
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.filters.arguments import Given
from tonari.io._common import StrPath
from tonari.methods import repeated
from tonari.methods.answer import answer, check_plan, on_side_of
from tonari.methods.call import Call
from tonari.methods.no_queries import none_nearest
from tonari.methods.points import Points
from tonari.streams.chunks import Source
from tonari.streams.output import check_absent, check_unfinished
from tonari.streams.writing import write_neighbors

SUFFIXES = (".ibin",)


@in_default_floats
@on_changed_rows
def search(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    differentiable: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | None = None,
) -> Neighbors:
    """Find the k nearest points of every query, exactly.

    Parameters
    ----------
    queries : array of shape (m, d)
        float32, float16, bfloat16, float64, uint8 or int8. NumPy arrays (bfloat16 of ml_dtypes), memory maps, torch
        tensors and JAX arrays in host memory; on CUDA torch tensors, CuPy and JAX arrays and whatever else speaks
        DLPack. Strided and read-only input is fine. For metrics of bits: uint8 of packed bits (``numpy.packbits``; any
        order of bits, if it is that of the points), or bool, whose columns fill whole bytes.
    points : array of shape (n, d)
        In the same memory as the queries, unless `device` names CUDA: then host memory is copied there.
    k : int
        Neighbours per query, 1 to n.
    metric : str
        A name in ``tonari.metrics.METRICS``: "euclidean", "cosine", "correlation", "inner_product", "l1" and others; or
        one of ``tonari.metrics.ALIASES``, such as "manhattan", "chebyshev" or "dot". Case does not matter.
        "minkowski:p" with p = 0.5, 1.5, 3 or 4: float64 distances sum(abs(q - x)**p)**(1/p); p = 1, 2 and inf are "l1",
        "euclidean" and "linf". "power:p", of the same four: the sum without the root.
        "haversine": rows are (latitude, longitude) in radians, distances float64 angles on the sphere. Pass float64
        rows: angles rounded to float32 are off by up to 0.05 arcseconds in a coordinate, and a warning says so.
        Of rows of bits: "hamming", the number of bits that differ (as FAISS and cuVS; SciPy and scikit-learn divide it
        by the number of bits), and "jaccard", 1 - abs(q & x) / abs(q | x), 0 if no bit is set.
    weights : array of shape (d,), optional
        A weight for each column, at least 0, for "euclidean", "sqeuclidean", "l1" and "linf". It means what SciPy's `w`
        does: a difference, raised to the power of the metric, is multiplied by it, and for "linf" it only says whether
        the column counts.
        Columns of weight 0 are left out. Distances are float64, those of the weighted rows; weights that are all 1 are
        none.
    method : str
        "exact": brute force. "kdtree": by a k-d tree, for "euclidean", "sqeuclidean", "l1", "linf", "minkowski:p" and
        "haversine"; of use in up to some 30 dimensions, where there are many points and queries. "bits": for "hamming"
        and "jaccard", which have no other method. "auto": whichever is expected to take less time, told from the sizes
        and, where a tree may pay, from what a few of the queries would visit. All give the same answer, bit for bit.
    where : bool array of shape (n,) or (m, n), or uint8 of shape (m, ceil(n / 8)), optional
        Points that may be found: by all queries, or by each. In bytes, bit j % 8 of byte j // 8 is point j, from the
        lowest bit (``numpy.packbits(mask, axis=1, bitorder="little")``); bits beyond n are ignored.
    exclude : list of lists of int, or pair (indptr, indices), optional
        For each query the points that it must not find. A tuple of two arrays is one of compressed rows: those of query
        i are ``indices[indptr[i]:indptr[i + 1]]``. Repeats are allowed.
    query_groups, point_groups : int arrays of shape (m,) and (n,), optional
        The group of each query and of each point: any whole numbers, in any order.
    groups : str, optional
        "same" (default): a query may find points of its group alone. "other": of all groups but its own.
    differentiable : bool
        Let gradients flow from the distances to queries and points, torch tensors: once, by the definitions in
        float64, and 0 where a distance has no derivative, as that of two equal rows. Indices have none. Where this is
        False and rows require gradients, a warning says so.
    device : str or list of str
        Where to search. "auto": where the arrays lie. "cpu". "cuda": on the device of the arrays, or on torch's
        current one. "cuda:1": on that one. ["cuda:0", "cuda:1"] or "cuda:all": on several, among which the points
        or the queries are divided.
    threads : int, optional
        On the CPU. Default: TONARI_NUM_THREADS, else the processors this process may use, but no more than the work is
        worth: a search of a millisecond or two has one.
    memory : int or str, optional
        Bytes that may be used beyond the input, such as "2GB"; kept by working slice by slice. On CUDA, bytes of each
        device; default: what is free there. Changed rows, of "haversine", "minkowski:p" or with weights, are a float64
        copy beside it.
    progress : None, bool or callable(done, total)
        None shows a bar on a terminal when the work takes over about two seconds.
    plan : Plan, optional
        A plan made by :func:`tonari.plan` for this problem, method and device, with overrides.

    Returns
    -------
    Neighbors(distances, indices)
        Both of shape (m, k), also for m = 0, as and where the queries are: NumPy in, NumPy out; a torch tensor, CuPy or
        JAX array on CUDA in, the same on that device out, in the order of its stream and without a way through host
        memory.
        distances: float32 (float64 when queries or points are float64, for "haversine" and "minkowski:p", and with
        weights), unsquared for "euclidean"; similarity, descending, for "inner_product". indices: int32 below 2**31
        points. Rows are ordered by (returned distance, index): ties go to the smaller index; for "haversine" by (chord,
        index), for "minkowski:p" by (sum of powers, index). Where `where`, `exclude` and groups leave a query fewer
        than k points, the last entries are -1 at distance inf (-inf for "inner_product").

    Raises
    ------
    TypeError, ValueError
        For other dtypes, ranks, NaN or infinity (naming the first bad row), unequal widths, k out of range, an unknown
        metric, method or device, a method that does not serve the metric, a device that is not there, queries and
        points on different devices, a budget too small.
    ImportError
        For CUDA without torch or Triton.

    Notes
    -----
    Low-precision products rank, exact float64 differences decide, and a bound on every rounding proves that no
    neighbour was lost (docs/exactness.md). The answer does not depend on method, threads, batches, instruction set or
    device.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> distances, indices = tonari.search(points[:1], points, k=2)
    >>> distances.tolist(), indices.tolist()
    ([[0.0, 5.0]], [[0, 1]])
    >>> tonari.search(points[:1], points, k=2, where=np.array([False, True, True])).indices.tolist()
    [[1, 2]]
    >>> tonari.search(points[:1], points, k=3, metric="minkowski:3").distances.round(3).tolist()
    [[0.0, 4.498, 8.996]]
    """
    filtered = not (where is exclude is query_groups is point_groups is groups is None)
    key = None
    if not filtered and differentiable is False and plan is None and threads is None and memory is None:
        key = repeated.key_of(queries, points, k, metric, method, device)
        known = repeated.answered(key, queries, points, progress)
        if known is not None:
            return known
    call = Call.of(
        {"queries": queries, "points": points},
        metric=metric,
        method=method,
        device=device,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    check_plan(plan, graph=False)
    carry = carries(differentiable, queries, points, call.metric.name)
    if filtered:
        refuse_plan(plan)
        given = Given(where, exclude, query_groups, point_groups, groups)
        return carry(on_side_of(queries, search_allowed(call, queries, points, k, given)))
    if plan is None:
        again = Points(points, call).replayed(queries, k, call.progress)
        if again is not None:
            return carry(again)
    rows, base = call.both(queries, points)
    those = Points(base, call)
    if not len(rows):
        return carry(on_side_of(queries, none_nearest(those.problem(rows, k), method)))
    decision = those.decided(rows, k, call.progress, plan=plan)
    if base is points and rows is queries and not call.place.devices:
        repeated.keep(key, call, decision)
    return carry(on_side_of(queries, answer(rows, base, decision, call.metric, call.progress)))


@in_default_floats
@inputs.without_gradients("use tonari.search with differentiable=True")
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
    queries : array of shape (m, d), path, or iterable of arrays of shape (any, d)
        A memory map and a file that :func:`tonari.io.read` maps are read chunk by chunk. An iterable is read on a
        thread of its own; its arrays may be of any kind that :func:`tonari.search` takes, of any number of rows, none
        included, and each may be the same buffer filled anew.
    points : Index, array of shape (n, d), or path
        An array or a file is prepared as :class:`tonari.Index` does.
    k : int
    out : path
        Big-ANN ground truth, .ibin: indices as int32, distances as float32 (float64 ones are rounded). Appears when
        all is done. A file of this name is refused, since it does not show which search it is of.
    rows : int, optional
        How many queries there are; needed for an iterable that is not a list, and then it has to be right.
    chunk_rows : int, optional
        Rows per chunk of an array or file. Default: 128 MiB of queries and results, or as many as are searched in
        about ten seconds if that is less.
    resume : bool
        Continue an earlier run of the same search that was interrupted. False starts over.
    overwrite : bool
        Replace a file `out`, when all is done.
    metric, weights, method, device, threads, memory
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
        `out` exists, without `overwrite`, or is no regular file; or the unfinished file is, or is a symbolic link, or
        has no journal.
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
    inputs.check_flag(overwrite, "overwrite")
    check_absent(out, overwrite=overwrite)
    check_unfinished(out)
    inputs.check_flag(resume, "resume")
    progress = inputs.check_progress(progress)
    source = Source(queries, rows=rows, chunk_rows=chunk_rows)
    if source.rows is None:
        raise ValueError("rows: an iterable of chunks does not tell how many queries it holds; give rows=")
    given = {"metric": metric, "weights": weights, "method": method, "device": device}
    given |= {"threads": threads, "memory": memory}
    index = _index(points, {name: value for name, value in given.items() if value is not None}, progress)
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
            raise ValueError(f"{', '.join(options)}: an Index has its own; leave out what it was made with")
        index: Index = points._frozen()
        return index
    if isinstance(points, str | os.PathLike):
        points = io.read(points)
    return Index(points, progress=None if callable(progress) else progress, **options)
