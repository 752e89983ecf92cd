"""Graphs and searches for data larger than memory: `tonari.build_graph` and `tonari.build_neighbors`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.graph.files.directory import LARGEST_MATRIX, open_neighbors
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.options import MetricOptions, Options, columns_of, shares
from tonari.methods.places.place import may_take_fewer
from tonari.metrics import get_metric
from tonari.metrics.names import is_own
from tonari.metrics.transforms.change import Change, change_for
from tonari.nn_descent.plan import check_recall, check_seed
from tonari.nn_descent.planning.planner import RECALL
from tonari.nn_descent.updates import check_name, refuse_on_cpu
from tonari.shards.build import Executor, Request, build
from tonari.shards.plan import METHODS
from tonari.shards.source import ArraySource, ChangedSource, Source, as_source
from tonari.shards.workers.local import LocalExecutor
from tonari.shards.workers.on_dask import DaskExecutor

if TYPE_CHECKING:
    from typing_extensions import Unpack


@in_default_floats
@inputs.without_gradients("use tonari.knn_graph with differentiable=True")
@shares(MetricOptions)
def build_graph(
    source: Any,
    k: int,
    out: str | os.PathLike[str],
    *,
    metric: str = "euclidean",
    method: str = "auto",
    recall: float | None = None,
    seed: int = 0,
    update: str | None = None,
    executor: Any = "local",
    resume: bool = True,
    overwrite: bool = False,
    **shared: Unpack[MetricOptions],
) -> KNNGraph:
    """Build the k-nearest-neighbour graph of more points than fit in memory, in a directory.

    The build is divided into tasks, which read ranges of rows; finished tasks are stored on disk. If a build ends early
    (Ctrl-C, kill -9, a power cut, a full disk), the same call continues it and repeats at most the tasks that were
    running.

    Parameters
    ----------
    source : path, sequence of paths, array, or object
        One of: a file that :func:`tonari.io.read` maps; several files of the same width and dtype, which are
        concatenated; an array; or an object with ``shape``, a pair (n, d), and a method ``rows(begin, end)``. This
        method returns the rows as an array of any library, with the same values at every call. Each device has a thread
        that calls it; no two calls run at the same time.
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour.
    out : path
        The directory of the graph. It is created if it does not exist; if it does, it must be empty or hold an earlier
        run of this function.
    metric : str
        As for :func:`tonari.knn_graph`, except "nan_euclidean" and functions. Metrics and arguments that require
        transformed rows, such as "mahalanobis" or `weights`, transform each range of rows when it is read.
    method : "auto", "exact", "clusters" or "ggm"
        "exact": every slab of rows is compared with every other; the graph has the bits of :func:`tonari.knn_graph`.
        "clusters": rows are distributed to overlapping shards so that near rows share a shard; the graph of each shard
        is built separately, and the lists of each row are merged. "ggm": a graph is built for each shard, and every two
        graphs are merged once (wang2021, section 5). "auto": "exact" without `recall`, else the method with the least
        expected time.
    recall : float, optional
        Share of the true neighbours to find, below 1, for "auto", "clusters" and "ggm". Default: 0.99 for "clusters"
        and "ggm". The recall is measured by comparing a sample of rows with the exact answer; if it is not reached, a
        warning says so.
    seed : int
        Seed of the random choices of "clusters" and "ggm".
    update : "pull" or "gnnd", optional
        On CUDA, for "clusters" and "ggm": how the rounds of NN-Descent update the lists, as for
        :func:`tonari.knn_graph`. ``method="ggm", update="gnnd"`` is the method of wang2021: each shard's graph is built
        by GNND, even if the exact graph is expected to be faster, and every two graphs are merged by GGM.
    device : str or sequence of str
        As for :func:`tonari.knn_graph`; "auto" means the CPU. With several CUDA devices, each runs separate tasks.
        "cuda:all" uses the number of devices with the shortest expected time; the graph's `record` gives the reason.
    executor : "local" or dask.distributed.Client
        "local" runs the tasks in this process. A Dask client (``pip install 'tonari[dask]'``) runs them on the workers
        of its cluster, which must reach the source and the directory by the same paths.
    threads : int, optional
        CPU threads of each worker.
    memory : int or str, optional
        On the CPU: the most memory that a worker may use beyond the interpreter, including the points but not the
        system's file cache; default: half of the free host memory. On CUDA: the most memory on each device; default:
        its free memory.
    resume : bool
        True continues an earlier run of the same call, or returns its result if that run is complete. False
        starts again, unless the directory holds a complete result of another call. A run of an earlier release is
        refused if its results would differ.
    overwrite : bool
        Whether to replace the files of another call, complete or not. Files of other programs are never touched.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.knn_graph`.

    Returns
    -------
    KNNGraph
        A graph whose arrays are mapped files; see :meth:`KNNGraph.open`.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid; a row has values that the metric does not accept (the message names it); the source has
        changed since the run began; or the directory belongs to another graph or has damaged files.
    tonari.core.errors.BudgetExceeded
        `memory` is too small; the message says how much is needed.
    BlockingIOError
        Another process is building in this directory.
    OSError
        The disk is or would become full, or a file is missing.

    Warns
    -----
    UserWarning
        The recall was not reached.

    Notes
    -----
    At level INFO, the logger "tonari" reports the plan before the build starts: the host memory, device memory and disk
    space that the build never exceeds. See docs/scale.md.

    The graph's `record`, which the directory stores, says how each kind of task ran, including tasks of interrupted
    runs.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(pathlib.Path(folder, "points.npy"), line)
    ...     graph = tonari.build_graph(pathlib.Path(folder, "points.npy"), 1, pathlib.Path(folder, "graph"))
    ...     print(graph.indices.ravel().tolist())
    [1, 0, 1, 2]
    """
    options = Options.of(metric, shared)
    change = _change(metric, shared)
    points = _compared(as_source(source), change)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; expected one of {', '.join(map(repr, METHODS))}")
    if recall is not None:
        recall = check_recall(recall)
        if method == "exact":
            raise ValueError("recall is for method='clusters', 'ggm' and 'auto': method='exact' finds all neighbours")
    elif method in ("clusters", "ggm"):
        recall = RECALL
    check_name(update)
    if update is not None and method not in ("clusters", "ggm"):
        raise ValueError(
            f"update={update!r} with method={method!r}: expected method='clusters' or 'ggm', since the others may be "
            "exact; name one of them, or leave update out"
        )
    devices, threads = _place(options.device, options.threads)
    if not devices:
        refuse_on_cpu(update)
    request = Request(
        source=points,
        k=inputs.check_k(k, points.n - 1, without_self=True),
        metric=_base(metric, change),
        method=method,
        recall=recall,
        seed=check_seed(seed),
        update=update,
        devices=devices,
        threads=threads,
        memory=inputs.parse_memory(options.memory),
        may_take_fewer=may_take_fewer(options.device),
        change=change,
    )
    _build(request, out, executor, resume, overwrite, options.progress)
    return KNNGraph.open(out)


@in_default_floats
@inputs.without_gradients("use tonari.search with differentiable=True")
@shares(MetricOptions)
def build_neighbors(
    source: Any,
    queries: Any,
    k: int,
    out: str | os.PathLike[str],
    *,
    metric: str = "euclidean",
    executor: Any = "local",
    resume: bool = True,
    overwrite: bool = False,
    **shared: Unpack[MetricOptions],
) -> Neighbors:
    """Find the k nearest points of each query exactly, for queries and points larger than memory, in a directory.

    Every block of queries is compared with every slab of points. The result has the bits of :func:`tonari.search`.
    Finished tasks are stored, and the same call resumes an interrupted run, as in :func:`tonari.build_graph`.

    Parameters
    ----------
    source, queries : path, sequence of paths, array, or object
        The points (`source`) and the queries, of the same dtype and width, as for :func:`tonari.build_graph`. There
        must be at least one query; :func:`tonari.search_to_file` also accepts files without rows.
    k : int
        Neighbours per query, 1 to the number of points.
    out : path
        The directory of the result, as for :func:`tonari.build_graph`.
    metric : str
        A name in ``tonari.metrics.METRICS`` or ``ALIASES``.
    device, executor, threads, memory, resume, overwrite, progress
        As for :func:`tonari.build_graph`.

    Returns
    -------
    Neighbors
        Two mapped arrays of shape (m, k) with the dtypes and the order of :func:`tonari.search`; see
        :func:`tonari.open_neighbors`.

    Raises
    ------
    TypeError, ValueError, tonari.core.errors.BudgetExceeded, BlockingIOError, OSError
        As for :func:`tonari.build_graph`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     points = pathlib.Path(folder, "points.npy")
    ...     np.save(points, line)
    ...     found = tonari.build_neighbors(points, line[1:2] + 1, 2, pathlib.Path(folder, "found"))
    ...     print(found.indices.tolist())
    [[1, 2]]
    """
    options = Options.of(metric, shared)
    change = _change(metric, shared)
    points, asked = as_source(source), as_source(queries, "queries")
    asked.name = "queries"
    if (points.d, points.dtype) != (asked.d, asked.dtype):
        raise ValueError(
            f"queries are {asked.dtype} with {asked.d} columns, the points {points.dtype} with {points.d}: they must "
            "have the same dtype and number of columns"
        )
    devices, threads = _place(options.device, options.threads)
    request = Request(
        source=_compared(points, change),
        queries=_compared(asked, change),
        k=inputs.check_k(k, points.n, without_self=False),
        metric=_base(metric, change),
        method="exact",
        recall=None,
        seed=0,
        devices=devices,
        threads=threads,
        memory=inputs.parse_memory(options.memory),
        may_take_fewer=may_take_fewer(options.device),
        change=change,
    )
    _build(request, out, executor, resume, overwrite, options.progress)
    return open_neighbors(out)


def _change(metric: Any, shared: Mapping[str, Any]) -> Change | None:
    """Return the transformation of rows that a metric requires, or None; refuse metrics that builds do not support."""
    record = get_metric(metric)
    if record.missing:
        raise Unsupported(
            f"metric={record.name!r}: rows with missing values are searched in memory alone; use tonari.knn_graph"
        )
    if is_own(record.name):
        raise ValueError("metric: a Triton function is supported by knn_graph only")
    change = change_for(metric, **columns_of(shared))
    if change is not None and change.transform is not None and change.transform.nbytes > LARGEST_MATRIX:
        raise Unsupported(
            f"transform: has {change.transform.nbytes} bytes, and a directory stores at most {LARGEST_MATRIX}; pass an "
            "object whose rows(begin, end) returns the changed rows"
        )
    return change


def _base(metric: Any, change: Change | None) -> str:
    """Return the name of the metric that compares rows, after their transformation if there is one."""
    return get_metric(metric).name if change is None else change.base


def _compared(rows: Source, change: Change | None) -> Source:
    """Return a source of transformed rows; without a transformation, the source `rows` itself."""
    return rows if change is None else ChangedSource(rows, change)


def _place(device: str | Sequence[str], threads: int | None) -> tuple[tuple[str, ...], int | None]:
    devices = inputs.devices_for(device)
    threads = inputs.check_threads(threads)
    if devices and threads is not None:
        raise ValueError(f"threads={threads}: is for the CPU, got device={device!r}; leave it out")
    return devices, threads


def _build(
    request: Request,
    out: str | os.PathLike[str],
    executor: Any,
    resume: bool,
    overwrite: bool,
    progress: ProgressLike,
) -> None:
    if not isinstance(out, str | os.PathLike):
        raise TypeError(f"out={out!r}: expected the path of a directory, got {type(out).__name__}")
    runs = _executor(executor, request)
    inputs.check_flag(resume, "resume")
    inputs.check_flag(overwrite, "overwrite")
    shown = inputs.check_progress(progress)
    build(request, Path(out), runs, resume=resume, overwrite=overwrite, progress=shown)


def _executor(given: Any, request: Request) -> Executor:
    devices = request.devices
    if isinstance(given, str) and given == "local":
        return LocalExecutor(devices)
    distributed = sys.modules.get("distributed")  # a caller with a Dask client has already imported Dask
    if distributed is not None and isinstance(given, distributed.Client):
        for name, rows in (("source", request.source), ("queries", request.queries)):
            if rows is not None and isinstance(rows.origin, ArraySource):
                raise TypeError(
                    f"{name}: is an array, which would travel to every Dask worker; give the path of a file that all "
                    "of them can read, or an object with rows(begin, end)"
                )
        return DaskExecutor(given, devices)
    raise TypeError(f"executor: expected 'local' or a dask.distributed.Client, got {given!r}")
