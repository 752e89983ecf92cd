"""The verbs: search, Index, knn_graph. Arguments are checked here, before any work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import arrays
from tonari._native import exact_values
from tonari.engines import Engine, engine_for
from tonari.exact.gpu import graphs
from tonari.graph import KNNGraph
from tonari.metrics import get_metric
from tonari.planning import Plan, check_method
from tonari.progress import ProgressLike
from tonari.results import Neighbors

if TYPE_CHECKING:
    from tonari.planning_gpu import GpuPlan


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
    plan: Plan | GpuPlan | None = None,
) -> Neighbors:
    """Find the k nearest points of every query, exactly.

    Parameters
    ----------
    queries : array of shape (m, d)
        float32, float16, float64, uint8 or int8. NumPy arrays, memory maps, torch tensors and JAX arrays in host
        memory; on CUDA torch tensors, CuPy and JAX arrays and whatever else speaks DLPack. Strided and read-only
        input is fine.
    points : array of shape (n, d)
        In the same memory as the queries, unless `device` names CUDA: then host memory is copied there.
    k : int
        Neighbours per query, 1 to n.
    metric : str
        euclidean, sqeuclidean, cosine, correlation, inner_product, l1, linf or chi2.
    method : str
        "auto" or "exact".
    device : str or list of str
        Where to search. "auto": where the arrays lie. "cpu". "cuda": on the device of the arrays, or on torch's
        current one. "cuda:1": on that one. ["cuda:0", "cuda:1"] or "cuda:all": on several, among which the points
        or the queries are divided.
    threads : int, optional
        On the CPU. Default: the processors this process may use, or TONARI_NUM_THREADS.
    memory : int or str, optional
        Bytes that may be used beyond the input, such as "2GB"; kept by working slice by slice. On CUDA, bytes of each
        device; default: what is free there.
    progress : None, bool or callable(done, total)
        None shows a bar on a terminal when the work takes over about two seconds.
    plan : Plan or GpuPlan, optional
        A plan made by :func:`tonari.plan` for this problem and device, with overrides.

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
        metric, method or device, a device that is not there, queries and points that lie apart, a budget too small.
    ImportError
        For CUDA without torch or Triton.

    Notes
    -----
    Low-precision products rank, exact float64 differences decide, and a bound on every rounding proves that no
    neighbour was lost (docs/exactness.md). The answer does not depend on threads, batches, instruction set or device.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> distances, indices = tonari.search(points[:1], points, k=2)
    >>> distances.tolist(), indices.tolist()
    ([[0.0, 5.0]], [[0, 1]])
    """
    check_method(method)
    plain = threads is None and memory is None and plan is None
    call = graphs.call_of(queries, points, k, metric, device) if plain else None
    again = graphs.replayed(call, (queries, points), progress)
    if again is not None:
        return again
    engine = engine_for(device, queries=queries, points=points)
    base = engine.rows(points, "points", metric)
    rows = engine.rows(queries, "queries", metric)
    arrays.same_width(rows, base)
    k = arrays.check_k(k, len(base), without_self=False)
    chosen = _plan_for(engine, base, rows, k, metric, threads=threads, memory=memory, plan=plan)
    found = engine.search_once(rows, base, chosen, progress=progress, call=call)
    return _on_side_of(queries, found)


class Index:
    """Points prepared once, searched many times.

    Parameters are those of :func:`search`. The points are packed into a kernel's layout at construction; the array
    itself is kept too, since exact values come from the original rows, and must not change meanwhile. On CUDA it is the
    first search that tells of NaN and the like, so that nothing waits for the device.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.eye(3, dtype=np.float32)
    >>> index = tonari.Index(points, metric="inner_product")
    >>> index.search(points[:1], k=1).indices.tolist()
    [[0]]
    """

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
        check_method(method)
        self._engine = engine_for(device, points=points)
        self.metric = get_metric(metric).name
        self._threads = arrays.check_threads(threads)
        self._memory = arrays.parse_memory(memory)
        self._points = self._engine.rows(points, "points", self.metric)
        self.n, self.d = self._points.shape
        self._plan = None
        # What is packed does not depend on the searches to come.
        self._plan = self._plan_for(self._points[:1], 1, self._threads)
        self._prepared = self._engine.prepare(self._points, self._plan, progress)

    def search(self, queries: Any, k: int, *, threads: int | None = None, progress: ProgressLike = None) -> Neighbors:
        """The k nearest points of every query; see :func:`search`.

        Queries in host memory are copied to the device that the points are on, and their results come back.
        """
        call = graphs.call_on(self, queries, k) if threads is None and self._memory is None else None
        again = graphs.replayed(call, (queries,), progress)
        if again is not None:
            return again
        rows = self._engine.rows(queries, "queries", self.metric)
        arrays.same_width(rows, self._points)
        k = arrays.check_k(k, self.n, without_self=False)
        plan = self._plan_for(rows, k, arrays.check_threads(threads) or self._threads)
        return _on_side_of(queries, self._engine.search(rows, self._prepared, plan, progress=progress, call=call))

    def _plan_for(self, queries: Any, k: int, threads: int | None) -> Any:
        return self._engine.plan(
            self._points,
            queries,
            k,
            self.metric,
            threads=threads,
            memory=self._memory,
            prepared_by=self._plan,
        )

    def __repr__(self) -> str:
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={arrays.name_of_dtype(self._points)})"


def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    method: str = "auto",
    include_self: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | GpuPlan | None = None,
) -> KNNGraph:
    """Build the exact k-nearest-neighbour graph of a set of points.

    Parameters are those of :func:`search`, and

    Parameters
    ----------
    k : int
        Neighbours per point, 1 to n - 1. A point is never its own neighbour: it is excluded by row identity, so that
        duplicates of it are found.
    include_self : bool
        Put the point itself into column 0 (at distance 0; at <x, x> for "inner_product"), as one of the k columns;
        then k goes from 1 to n.

    Returns
    -------
    KNNGraph

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.knn_graph(line, k=1).indices.ravel().tolist()
    [1, 0, 1]
    """
    check_method(method)
    engine = engine_for(device, points=points)
    rows = engine.rows(points, "points", metric)
    n = len(rows)
    k = arrays.check_k(k, n if include_self else n - 1, without_self=not include_self)
    others = k - include_self
    plain = threads is None and memory is None and plan is None
    call = graphs.call_of(rows, rows, others, metric, device, self_join=True) if plain else None
    found = engine.no_others(rows, metric) if others == 0 else graphs.replayed(call, (rows,), progress)
    if found is None:
        chosen = _plan_for(
            engine, rows, rows, others, metric, threads=threads, memory=memory, plan=plan, self_join=True
        )
        found = engine.search_once(rows, rows, chosen, self_join=True, progress=progress, call=call)
    if include_self:
        found = _with_self(found, rows, metric)
    if arrays.place_of(points, "points") is not None:
        found = _on_side_of(points, found)
    return KNNGraph(
        indices=found.indices, distances=found.distances, metric=metric, method="exact", include_self=include_self
    )


def _on_side_of(queries: Any, found: Neighbors) -> Neighbors:
    """The answer as the kind of array that the queries are."""
    side = arrays.side_of(queries, "queries")
    return Neighbors(*(arrays.hand_back(part, side) for part in found))


def _plan_for(
    engine: Engine,
    points: Any,
    queries: Any,
    k: int,
    metric: str,
    *,
    threads: int | None,
    memory: int | str | None,
    plan: Plan | GpuPlan | None,
    self_join: bool = False,
) -> Any:
    """The caller's plan if there is one, refused where it was made for another problem; else a new one."""
    if plan is None:
        return engine.plan(points, queries, k, metric, threads=threads, memory=memory, self_join=self_join)
    if threads is not None or memory is not None:
        raise ValueError("a plan has its own threads and memory: give them to tonari.plan, not beside plan=")
    engine.check_plan(plan, points)
    n, d = points.shape
    facts = {"n": n, "m": len(queries), "d": d, "k": k, "metric": metric, "dtype": arrays.name_of_dtype(points)}
    for name, value in facts.items():
        if getattr(plan, name) != value:
            raise ValueError(
                f"the plan was made for {name}={getattr(plan, name)!r}, but this search has {name}={value!r}"
            )
    return plan


def _with_self(found: Neighbors, rows: Any, metric: str) -> Neighbors:
    """Each point put before its neighbours, beside the points."""
    if not isinstance(rows, np.ndarray):
        from tonari.exact.gpu.own import with_self

        return with_self(found, rows, metric)
    own = np.arange(len(rows), dtype=np.int64)[:, None]
    values = np.zeros((len(rows), 1))
    if metric == "inner_product":
        exact_values(metric, rows, rows, own, values)
    first = values.astype(found.distances.dtype)
    return Neighbors(np.hstack([first, found.distances]), np.hstack([own.astype(found.indices.dtype), found.indices]))
