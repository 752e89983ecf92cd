"""The verbs: search, Index, knn_graph. Arguments are checked here, before any work."""

from __future__ import annotations

import dataclasses
import logging
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.core.callers import callers_level
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.exact.cuda import cuda_graph_cache as graphs
from tonari.exact.plan import Plan, check_method, check_search_method
from tonari.graph.approximate import choose_or_plan, descended, kind_of_start, may_miss
from tonari.graph.knn_graph import KNNGraph
from tonari.kdtree.plan import TreePlan, check_tree_metric, held_as, refusal
from tonari.methods.auto import USUAL_K, Choice, choose
from tonari.methods.engines import Engine, engine_for
from tonari.metrics import TritonFunction, get_metric
from tonari.nn_descent.plan import DescentPlan
from tonari.streams.searching import search_chunks

if TYPE_CHECKING:
    from tonari.exact.cuda.cuda_graph_cache import Call
    from tonari.exact.cuda.plan import GpuPlan
    from tonari.nn_descent.report import DescentReport

logger = logging.getLogger("tonari")


@in_default_floats
def search(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    method: str = "auto",
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | GpuPlan | TreePlan | None = None,
) -> Neighbors:
    """Find the k nearest points of every query, exactly.

    Parameters
    ----------
    queries : array of shape (m, d)
        float32, float16, bfloat16, float64, uint8 or int8. NumPy arrays (bfloat16 of ml_dtypes), memory maps, torch
        tensors and JAX arrays in host memory; on CUDA torch tensors, CuPy and JAX arrays and whatever else speaks
        DLPack. Strided and read-only input is fine.
    points : array of shape (n, d)
        In the same memory as the queries, unless `device` names CUDA: then host memory is copied there.
    k : int
        Neighbours per query, 1 to n.
    metric : str
        euclidean, sqeuclidean, cosine, correlation, inner_product, l1, linf or chi2.
    method : str
        "exact": brute force. "kdtree": by a k-d tree, for "euclidean", "sqeuclidean", "l1" and "linf"; of use in up to
        some 30 dimensions, where there are many points and queries. "auto": whichever is expected to take less time,
        told from the sizes and, where a tree may pay, from what a few of the queries would visit. All give the same
        answer, bit for bit.
    device : str or list of str
        Where to search. "auto": where the arrays lie. "cpu". "cuda": on the device of the arrays, or on torch's
        current one. "cuda:1": on that one. ["cuda:0", "cuda:1"] or "cuda:all": on several, among which the points
        or the queries are divided.
    threads : int, optional
        On the CPU. Default: TONARI_NUM_THREADS, else the processors this process may use, but no more than the work is
        worth: a search of a millisecond or two has one.
    memory : int or str, optional
        Bytes that may be used beyond the input, such as "2GB"; kept by working slice by slice. On CUDA, bytes of each
        device; default: what is free there.
    progress : None, bool or callable(done, total)
        None shows a bar on a terminal when the work takes over about two seconds.
    plan : Plan, GpuPlan or TreePlan, optional
        A plan made by :func:`tonari.plan` for this problem, method and device, with overrides.

    Returns
    -------
    Neighbors(distances, indices)
        Both of shape (m, k), as and where the queries are: NumPy in, NumPy out; a torch tensor, CuPy or JAX array on
        CUDA in, the same on that device out, in the order of its stream and without a way through host memory.
        distances: float32 (float64 when queries or points are float64), unsquared for "euclidean"; similarity,
        descending, for "inner_product". indices: int32 below 2**31 points. Rows are ordered by (returned distance,
        index): ties go to the smaller index.

    Raises
    ------
    TypeError, ValueError
        For other dtypes, ranks, NaN or infinity (naming the first bad row), unequal widths, k out of range, an unknown
        metric, method or device, a method that does not serve the metric, a device that is not there, queries and
        points that lie apart, a budget too small.
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
    """
    check_search_method(method)
    metric = _check_method(method, metric)
    progress = inputs.check_progress(progress)
    _check_plan(plan, graph=False)
    plain = threads is None and memory is None and plan is None and method != "kdtree"
    call = graphs.call_of(queries, points, k, metric, device) if plain else None
    again = graphs.replayed(call, (queries, points), progress)
    if again is not None:
        return again
    engine = engine_for(device, queries=queries, points=points)
    base = engine.rows(points, "points", metric)
    rows = engine.rows(queries, "queries", metric)
    inputs.same_width(rows, base)
    k = inputs.check_k(k, len(base), without_self=False)
    given: dict[str, Any] = {"threads": threads, "memory": memory, "plan": plan, "progress": progress}
    chosen = _chosen(engine, base, rows, k, metric, method, **given)
    return _on_side_of(queries, _answer(engine, rows, base, chosen, progress=progress, call=call))


class Index:
    """Points prepared once, searched many times.

    Parameters are those of :func:`search`. The points are packed into a kernel's layout, or put into a tree, at
    construction; the array itself is kept too, since exact values come from the original rows, and must not change
    meanwhile. On CUDA it is the first search that tells of NaN and the like, so that nothing waits for the device.

    With method="auto" the choice is made once, as if as many queries as there are points were to come.

    An Index can be pickled and copied. ``pickle`` and ``copy.deepcopy`` take the points and the chosen method along and
    pack anew, by the plan of that method on the machine where the copy is; on the same machine that is the same plan.
    Points on CUDA come back on the device of the same number. ``copy.copy`` shares the points and what is packed. All
    of them answer with the same bits.

    On the CPU as many points stay packed as `memory` leaves room for beside the search at hand. The others are packed
    anew by every search.

    Warns
    -----
    UserWarning
        Once, at the first search for which not all points stay packed: how many do, and the `memory` for all.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.eye(3, dtype=np.float32)
    >>> index = tonari.Index(points, metric="inner_product")
    >>> index.search(points[:1], k=1).indices.tolist()
    [[0]]
    """

    @in_default_floats
    def __init__(
        self,
        points: Any,
        *,
        metric: str = "euclidean",
        method: str = "auto",
        device: str | Sequence[str] = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        progress: ProgressLike = None,
    ) -> None:
        check_search_method(method)
        _check_method(method, metric)
        progress = inputs.check_progress(progress)
        self._engine = engine_for(device, points=points)
        self._device = device
        self.metric = get_metric(metric).name
        self._threads = inputs.check_threads(threads)
        self._memory = inputs.parse_memory(memory)
        self._points = self._engine.rows(points, "points", self.metric)
        self.n, self.d = self._points.shape
        self._asked = method
        self._begin(self._first_choice(progress), progress)

    def _begin(self, first: Choice, progress: ProgressLike) -> None:
        """Prepare the points as was chosen, unless they are."""
        if first.prepared is None:
            first = first._replace(prepared=self._engine.prepare(self._points, first.plan, progress))
        self.method: str = first.plan.method
        self._plan = first.plan
        self._ready = {self._kind(self.method, self._points): first}
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("_engine", "_ready")}
        points = self._points
        if inputs.kind_of(points) == "torch" and points.untyped_storage().nbytes() > points.nbytes:
            # A tensor takes along all the memory that it is a view of.
            state["_points"] = points.clone(memory_format=sys.modules["torch"].contiguous_format)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        points, before = self._points, self._plan
        self._engine = engine_for(self._device, points=points)
        threads = self._engine.threads_to_prepare(self._threads)
        given: dict[str, Any] = {"method": before.method, "threads": threads, "memory": self._memory}
        self._begin(Choice(self._engine.plan(points, points[:1], before.k, self.metric, **given)), False)

    def __copy__(self) -> Index:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _ready=dict(self._ready))
        return made

    @in_default_floats
    def search(self, queries: Any, k: int, *, threads: int | None = None, progress: ProgressLike = None) -> Neighbors:
        """The k nearest points of every query; see :func:`search`.

        Queries in host memory are copied to the device that the points are on, and their results come back.
        """
        progress = inputs.check_progress(progress)
        plain = threads is None and self._memory is None and self.method == "exact"
        call = graphs.call_on(self, queries, k) if plain else None
        again = graphs.replayed(call, (queries,), progress)
        if again is not None:
            return again
        rows = self._engine.rows(queries, "queries", self.metric)
        inputs.same_width(rows, self._points)
        k = inputs.check_k(k, self.n, without_self=False)
        chosen = self._chosen(rows, k, inputs.check_threads(threads) or self._threads, progress)
        return _on_side_of(queries, _answer(self._engine, rows, self._points, chosen, progress=progress, call=call))

    def search_chunks(
        self,
        queries: Any,
        k: int,
        *,
        rows: int | None = None,
        chunk_rows: int | None = None,
        progress: ProgressLike = None,
    ) -> Iterator[Neighbors]:
        """The k nearest points of a stream of queries, chunk by chunk.

        Chunks are read, searched and used at the same time: while the caller has the answer to one, the next is
        searched and the one after it is read, each on a thread of its own. :func:`tonari.search_to_file` writes a file.

        Parameters
        ----------
        queries : iterable of arrays of shape (*, d), array of shape (m, d), or path
            What :meth:`search` takes, piece by piece. An iterable is read on a thread; a chunk may have any number of
            rows, none included, and may be the same buffer filled anew. An array, a memory map or a file (as
            :func:`tonari.io.read` opens it) is cut into chunks.
        k : int
        rows : int, optional
            How many queries an iterable holds, for the time to go that the progress shows.
        chunk_rows : int, optional
            Rows per chunk of an array or file. Default: 128 MiB of queries and results, or as many as are searched in
            about ten seconds if that is less.
        progress : None, bool or callable(done, total)
            Counts queries; a total that is not known is 0. None shows a bar on a terminal when the work takes over two
            seconds.

        Yields
        ------
        Neighbors(distances, indices)
            Of shape (rows of the chunk, k), one for each chunk, in order, as and where the chunk is. Together they have
            the bits of one :meth:`search` of all queries.

        Raises
        ------
        TypeError, ValueError
            What :meth:`search` refuses, after the answers to all chunks before it; rows are numbered from the beginning
            of the stream. What an iterable raises comes through.

        Notes
        -----
        At a time two chunks of queries and two of results are held. Leaving the loop early ends the threads.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> index = tonari.Index(np.array([[0.0], [1.0], [3.0]], dtype=np.float32))
        >>> chunks = (np.full((rows, 1), 2.8, np.float32) for rows in (2, 1))
        >>> [found.indices.tolist() for found in index.search_chunks(chunks, k=1)]
        [[[2], [2]], [[2]]]
        """
        progress = inputs.check_progress(progress)
        return search_chunks(self, queries, k, rows=rows, chunk_rows=chunk_rows, progress=progress)

    def _first_choice(self, progress: ProgressLike) -> Choice:
        """The method, and a plan to prepare the points by: what is prepared does not depend on the searches to come."""
        given: dict[str, Any] = {"threads": self._engine.threads_to_prepare(self._threads), "memory": self._memory}
        points, one = self._points, self._points[:1]
        if self._asked != "auto":
            return Choice(self._engine.plan(points, one, 1, self.metric, method=self._asked, **given))
        k = min(USUAL_K, self.n)
        return choose(self._engine, points, one, k, self.metric, as_if=points, progress=progress, **given)

    def _chosen(self, queries: Any, k: int, threads: int | None, progress: ProgressLike) -> Choice:
        """The plan of a search, and the points as it needs them: prepared once for each kind of search that comes."""
        method = self._method_for(k)
        kind = self._kind(method, queries)
        ready = self._ready.get(kind)
        plan = self._engine.plan(
            self._points,
            queries,
            k,
            self.metric,
            method=method,
            threads=threads,
            memory=self._memory,
            prepared_by=None if ready is None else ready.plan,
        )
        self._warn_of_packing(plan)
        if ready is None:
            ready = Choice(plan, self._engine.prepare(self._points, plan, progress))
            self._ready[kind] = ready
        return Choice(plan, ready.prepared)

    def _warn_of_packing(self, plan: Any) -> None:
        """Say once that memory is too small to hold all points packed, and what would be enough."""
        if self._warned or not isinstance(plan, Plan) or plan.resident:
            return
        self._warned = True
        warnings.warn(
            f"memory={self._memory} bytes hold {plan.resident_points} of {self.n} packed points beside a search of "
            f"{plan.m} queries with k={plan.k}: every such search packs the others anew; from "
            f"memory={plan.resident_memory} on all stay packed",
            stacklevel=callers_level(),
        )

    def _method_for(self, k: int) -> str:
        """The method of the Index; brute force where a tree was chosen and does not serve this k."""
        plan = self._plan
        if self._asked != "auto" or not isinstance(plan, TreePlan):
            return self.method
        why_not = refusal(self.n, self.d, k, self.metric, on_cuda=bool(plan.devices))
        return self.method if why_not is None else "exact"

    def _kind(self, method: str, queries: Any) -> tuple[str, str]:
        """What tells prepared points apart: the method, and whether a tree holds float64, as for float64 queries."""
        dtypes = inputs.name_of_dtype(self._points), inputs.name_of_dtype(queries)
        return method, held_as(*dtypes) if method == "kdtree" else ""

    def __repr__(self) -> str:
        dtype = inputs.name_of_dtype(self._points)
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={dtype}, method={self.method!r})"


@in_default_floats
def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str | TritonFunction = "euclidean",
    method: str = "auto",
    recall: float | None = None,
    seed: int | None = None,
    start: str | KNNGraph | None = None,
    include_self: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | GpuPlan | TreePlan | DescentPlan | None = None,
) -> KNNGraph:
    """Build the k-nearest-neighbour graph of a set of points: exactly, or by NN-Descent up to a recall.

    Parameters are those of :func:`search`, and

    Parameters
    ----------
    metric : str or Triton function
        As for :func:`search`; for "nn-descent" on CUDA also a function of yours, decorated by ``triton.jit``, of two
        float64 tensors q and x that is applied to the elements of two points and summed: f(q, x) >= 0, and 0 where they
        are equal. The graph's metric is called "triton:" and the function's name.
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour: it is excluded by row identity, so that
        duplicates of it are found.
    method : str
        As for :func:`search`, or "nn-descent": approximate, for many points in more than a few dimensions, on the CPU
        or on one CUDA device. Its distances are those of exact search, its neighbours nearly all of the true ones;
        the same seed gives the same graph, whatever the threads. "auto" takes it where `recall` is given and it is
        expected to be clearly sooner, and gives the exact graph where NN-Descent then misses the recall.
    recall : float, optional
        Share of the true neighbours that is to be reached, below 1: NN-Descent goes on until a random sample of rows,
        compared with the exact answer, says so with 97.5 % confidence, and warns where that is out of its reach. For
        "nn-descent", where the default is 0.99, and for "auto", which is exact without it.
    seed : int, optional
        Of what NN-Descent draws. Default: 0.
    start : "clusters", "random" or KNNGraph, optional
        Where NN-Descent begins: with members of near clusters (default), with random neighbours, or with those in a
        graph of the same points, of any metric or k.
    include_self : bool
        Put the point itself into column 0 (at distance 0; at <x, x> for "inner_product"), as one of the k columns;
        then k goes from 1 to n.

    Returns
    -------
    KNNGraph
        Its arrays are of the kind and in the place of the points, as those of :func:`search` are of the queries. Of an
        approximate graph `report` has the recall that was measured.

    Warns
    -----
    UserWarning
        NN-Descent did not reach the recall, and was asked for by name.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.knn_graph(line, k=1).indices.ravel().tolist()
    [1, 0, 1]
    """
    started = time.perf_counter()
    name = _check_method(method, metric)
    include_self, progress = inputs.check_flag(include_self, "include_self"), inputs.check_progress(progress)
    _check_plan(plan, graph=True)
    approximate = may_miss(method, recall, seed, start, plan)
    engine = engine_for(device, points=points)
    rows = engine.rows(points, "points", name)
    n = len(rows)
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    others = k - include_self
    given: dict[str, Any] = {"threads": threads, "memory": memory, "progress": progress}
    plain = threads is None and memory is None and plan is None and method not in ("kdtree", "nn-descent")
    call = graphs.call_of(rows, rows, others, name, device, self_join=True) if plain and not approximate else None
    found = engine.no_others(rows, name) if others == 0 else graphs.replayed(call, (rows,), progress)
    made_by, drawn, report = "exact" if method == "auto" else method, None, None
    if found is None:
        if approximate and plan is None:
            asked = {"recall": recall, "seed": seed, "start": kind_of_start(start)}
            chosen = choose_or_plan(engine, rows, others, name, method, asked, **given)
        else:
            chosen = _chosen(engine, rows, rows, others, name, method, plan=plan, self_join=True, **given)
        found, made_by, drawn, report = _graph(engine, rows, chosen, start, progress, call)
    if include_self:
        found = engine.with_self(found, rows, name)
    found = _on_side_of(points, found)
    if report is not None:
        report = report.taken(started)
    return KNNGraph.of_lists(found, name, made_by, include_self, seed=drawn, report=report)


def _graph(
    engine: Engine, rows: Any, chosen: Choice, start: Any, progress: ProgressLike, call: Call | None
) -> tuple[Neighbors, str, int | None, DescentReport | None]:
    """What was chosen, the method, the seed and the report; where NN-Descent misses its recall, what comes instead."""
    plan = chosen.plan
    if isinstance(plan, DescentPlan):
        found, report = descended(engine, rows, plan, start, progress, chosen.patience)
        if chosen.instead is None or report.reached:
            return found, plan.method, plan.seed, report
        logger.info("auto gives NN-Descent up: %s", report)
        del found  # which would be held beside the next
        chosen = chosen.instead
    found = _answer(engine, rows, rows, chosen, self_join=True, progress=progress, call=call)
    return found, chosen.plan.method, None, None


def _on_side_of(queries: Any, found: Neighbors) -> Neighbors:
    """The answer as the kind of array that the queries are."""
    side = inputs.side_of(queries, "queries")
    return Neighbors(*(inputs.hand_back(part, side) for part in found))


def _check_method(method: str, metric: Any) -> str:
    """The name of the metric."""
    check_method(method)
    name = get_metric(metric).name
    if method == "kdtree":
        check_tree_metric(name)
    return name


def _check_plan(plan: Any, *, graph: bool) -> None:
    """Refuse what is no plan, and for a search a plan that builds graphs."""
    if plan is None or isinstance(plan, Plan | TreePlan):
        return
    if isinstance(plan, DescentPlan):
        if graph:
            return
        raise ValueError(
            "plan: its method is 'nn-descent', which builds graphs; use tonari.knn_graph, or make it with "
            "tonari.plan(..., method='exact') or 'kdtree'"
        )
    from tonari.exact.cuda.plan import GpuPlan

    if not isinstance(plan, GpuPlan):
        raise TypeError(f"plan: expected what tonari.plan(...) returns, got {type(plan).__name__}")


def _chosen(
    engine: Engine,
    points: Any,
    queries: Any,
    k: int,
    metric: str,
    method: str,
    *,
    threads: int | None,
    memory: int | str | None,
    plan: Plan | GpuPlan | TreePlan | DescentPlan | None,
    self_join: bool = False,
    progress: ProgressLike = None,
) -> Choice:
    """The caller's plan if there is one, refused where it was made for another problem; else a new one."""
    if plan is None:
        given: dict[str, Any] = {"threads": threads, "memory": memory, "self_join": self_join}
        if method == "auto":
            return choose(engine, points, queries, k, metric, progress=progress, **given)
        return Choice(engine.plan(points, queries, k, metric, method=method, **given))
    if threads is not None or memory is not None:
        raise ValueError("a plan has its own threads and memory: give them to tonari.plan, not beside plan=")
    if method not in ("auto", plan.method):
        raise ValueError(f"the plan's method is {plan.method!r}, but this search has method={method!r}")
    engine.check_plan(plan, points)
    n, d = points.shape
    facts = {"n": n, "m": len(queries), "d": d, "k": k, "metric": metric, "dtype": inputs.name_of_dtype(points)}
    for name, value in facts.items():
        if getattr(plan, name) != value:
            raise ValueError(
                f"the plan was made for {name}={getattr(plan, name)!r}, but this search has {name}={value!r}"
            )
    if isinstance(plan, TreePlan):  # tonari.plan is not told the dtype of the queries
        plan = dataclasses.replace(plan, held=held_as(plan.dtype, inputs.name_of_dtype(queries)))
    return Choice(plan)


def _answer(
    engine: Engine,
    queries: Any,
    points: Any,
    chosen: Choice,
    *,
    self_join: bool = False,
    progress: ProgressLike = None,
    call: Call | None = None,
) -> Neighbors:
    """What was chosen, done: with the points as they are prepared already, else prepared for this search alone."""
    given: dict[str, Any] = {"self_join": self_join, "progress": progress, "call": call}
    if chosen.prepared is None:
        return engine.search_once(queries, points, chosen.plan, **given)
    return engine.search(queries, chosen.prepared, chosen.plan, **given)
