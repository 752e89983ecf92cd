"""The verbs: search, Index, knn_graph. Arguments are checked here, before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import arrays
from tonari._native import exact_values
from tonari.exact import PreparedPoints, search_prepared
from tonari.graph import KNNGraph
from tonari.metrics import get_metric
from tonari.planning import Plan, check_method
from tonari.planning import plan as make_plan
from tonari.progress import ProgressLike
from tonari.results import Neighbors, index_dtype


def search(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    method: str = "auto",
    device: str = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | None = None,
) -> Neighbors:
    """Find the k nearest points of every query, exactly.

    Parameters
    ----------
    queries : array of shape (m, d)
        float32, float16, float64, uint8 or int8. NumPy arrays, memory maps, torch tensors on the CPU; strided and
        read-only input is fine.
    points : array of shape (n, d)
    k : int
        Neighbours per query, 1 to n.
    metric : str
        euclidean, sqeuclidean, cosine, correlation, inner_product, l1, linf or chi2.
    method : str
        "auto" or "exact".
    device : str
        "auto" or "cpu".
    threads : int, optional
        Default: the processors this process may use, or TONARI_NUM_THREADS.
    memory : int or str, optional
        Bytes that may be used beyond the input, such as "2GB"; kept by packing slice by slice.
    progress : None, bool or callable(done, total)
        None shows a bar on a terminal when the work takes over about two seconds.
    plan : Plan, optional
        A plan made by :func:`tonari.plan` for this problem, with overrides.

    Returns
    -------
    Neighbors(distances, indices)
        Both of shape (m, k), on the input's side (torch in, torch out). distances: float32 (float64 when queries or
        points are float64), unsquared for "euclidean"; similarity, descending, for "inner_product". indices: int32
        below 2**31 points. Rows are ordered by (returned distance, index): ties go to the smaller index.

    Raises
    ------
    TypeError, ValueError
        For other dtypes, ranks, NaN or infinity (naming the first bad row), unequal widths, k out of range, an unknown
        metric, method or device, a budget too small.

    Notes
    -----
    Low-precision products rank, exact float64 differences decide, and a bound on every rounding proves that no
    neighbour was lost (docs/exactness.md). The answer does not depend on threads, batches or instruction set.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> distances, indices = tonari.search(points[:1], points, k=2)
    >>> distances.tolist(), indices.tolist()
    ([[0.0, 5.0]], [[0, 1]])
    """
    check_method(method)
    arrays.check_device(device)
    kind = arrays.kind_of(queries)
    base = _rows(points, "points", metric)
    rows = _rows(queries, "queries", metric)
    arrays.same_width(rows, base)
    k = arrays.check_k(k, len(base), without_self=False)
    chosen = _plan_for(base, rows, k, metric, threads=threads, memory=memory, plan=plan)
    found, _ = search_prepared(rows, PreparedPoints(base, chosen, progress), chosen, progress=progress)
    return Neighbors(*(arrays.like(kind, part) for part in found))


class Index:
    """Points prepared once, searched many times.

    Parameters are those of :func:`search`. The points are packed into a kernel's layout at construction; the array
    itself is kept too, since exact values come from the original rows, and must not change meanwhile.

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
        device: str = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        progress: ProgressLike = None,
    ) -> None:
        check_method(method)
        arrays.check_device(device)
        self.metric = get_metric(metric).name
        self._threads = arrays.check_threads(threads)
        self._memory = arrays.parse_memory(memory)
        self._points = _rows(points, "points", self.metric)
        self.n, self.d = self._points.shape
        # What is packed does not depend on the searches to come.
        plan = _plan_for(self._points, self._points[:1], 1, self.metric, threads=self._threads, memory=self._memory)
        self._prepared = PreparedPoints(self._points, plan, progress)

    def search(self, queries: Any, k: int, *, threads: int | None = None, progress: ProgressLike = None) -> Neighbors:
        """The k nearest points of every query; see :func:`search`."""
        kind = arrays.kind_of(queries)
        rows = _rows(queries, "queries", self.metric)
        arrays.same_width(rows, self._points)
        k = arrays.check_k(k, self.n, without_self=False)
        threads = arrays.check_threads(threads) or self._threads
        plan = _plan_for(self._points, rows, k, self.metric, threads=threads, memory=self._memory)
        if not plan.resident:
            self._prepared.release()
        found, _ = search_prepared(rows, self._prepared, plan, progress=progress)
        return Neighbors(*(arrays.like(kind, part) for part in found))

    def __repr__(self) -> str:
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={self._points.dtype})"


def knn_graph(
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    method: str = "auto",
    include_self: bool = False,
    device: str = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
    plan: Plan | None = None,
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
    arrays.check_device(device)
    rows = _rows(points, "points", metric)
    n = len(rows)
    own = np.arange(n, dtype=np.int64)
    k = arrays.check_k(k, n if include_self else n - 1, without_self=not include_self)
    others = k - include_self
    if others == 0:
        found = _nothing(rows)
    else:
        chosen = _plan_for(rows, rows, others, metric, threads=threads, memory=memory, plan=plan, self_join=True)
        prepared = PreparedPoints(rows, chosen, progress)
        found, _ = search_prepared(rows, prepared, chosen, self_ids=own, progress=progress)
    if include_self:
        found = _with_self(found, rows, own, metric)
    return KNNGraph(
        indices=found.indices, distances=found.distances, metric=metric, method="exact", include_self=include_self
    )


def _rows(x: Any, name: str, metric: str) -> npt.NDArray[Any]:
    """Rows that the metric accepts."""
    rows = arrays.as_rows(x, name)
    if get_metric(metric).nonnegative:
        arrays.check_nonnegative(rows, name)
    return rows


def _plan_for(
    points: npt.NDArray[Any],
    queries: npt.NDArray[Any],
    k: int,
    metric: str,
    *,
    threads: int | None,
    memory: int | str | None,
    plan: Plan | None = None,
    self_join: bool = False,
) -> Plan:
    """The caller's plan if there is one, refused where it was made for another problem; else a new one."""
    n, d = points.shape
    if plan is None:
        return make_plan(
            n,
            len(queries),
            d,
            k,
            dtype=points.dtype,
            metric=metric,
            threads=threads,
            memory=memory,
            self_join=self_join,
        )
    if threads is not None or memory is not None:
        raise ValueError("a plan has its own threads and memory: give them to tonari.plan, not beside plan=")
    facts = {"n": n, "m": len(queries), "d": d, "k": k, "metric": metric, "dtype": points.dtype.name}
    for name, value in facts.items():
        if getattr(plan, name) != value:
            raise ValueError(
                f"the plan was made for {name}={getattr(plan, name)!r}, but this search has {name}={value!r}"
            )
    return plan


def _nothing(rows: npt.NDArray[Any]) -> Neighbors:
    value = np.float64 if rows.dtype == np.float64 else np.float32
    return Neighbors(np.empty((len(rows), 0), value), np.empty((len(rows), 0), index_dtype(len(rows))))


def _with_self(found: Neighbors, rows: npt.NDArray[Any], own: npt.NDArray[np.int64], metric: str) -> Neighbors:
    values = np.zeros((len(rows), 1))
    if metric == "inner_product":
        exact_values(metric, rows, rows, own[:, None], values)
    first = values.astype(found.distances.dtype)
    ids = own[:, None].astype(found.indices.dtype)
    return Neighbors(np.hstack([first, found.distances]), np.hstack([ids, found.indices]))
