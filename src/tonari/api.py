"""The verbs: search, Index, knn_graph. Arguments are checked here, before any work."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tonari import arrays
from tonari._native import exact_values
from tonari.exact import PreparedPoints, search_prepared
from tonari.graph import KNNGraph
from tonari.metrics import get_metric
from tonari.planning import Plan, check_method
from tonari.planning import plan as make_plan
from tonari.progress import ProgressLike
from tonari.results import Neighbors


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
    kind = arrays.kind_of(queries)
    index = Index(points, metric=metric, device=device, threads=threads, memory=memory, plan=plan, method=method)
    found = index._search(index._checked(queries), k, progress=progress, threads=threads)
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
        plan: Plan | None = None,
    ) -> None:
        check_method(method)
        arrays.check_device(device)
        self.metric = get_metric(metric).name
        self._threads = arrays.check_threads(threads)
        self._memory = arrays.parse_memory(memory)
        self._given = plan
        self._points = self._own(arrays.as_rows(points, "points"), "points")
        self.n, self.d = self._points.shape
        if plan is not None:
            _check_plan(plan, n=self.n, d=self.d, metric=self.metric, dtype=self._points.dtype.name)
        self._prepared: PreparedPoints | None = None

    def search(self, queries: Any, k: int, *, threads: int | None = None, progress: ProgressLike = None) -> Neighbors:
        """The k nearest points of every query; see :func:`search`."""
        kind = arrays.kind_of(queries)
        found = self._search(self._checked(queries), k, progress=progress, threads=threads)
        return Neighbors(*(arrays.like(kind, part) for part in found))

    def __repr__(self) -> str:
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={self._points.dtype})"

    def _own(self, rows: Any, name: str) -> Any:
        if get_metric(self.metric).nonnegative:
            arrays.check_nonnegative(rows, name)
        return rows

    def _checked(self, queries: Any) -> Any:
        rows = self._own(arrays.as_rows(queries, "queries"), "queries")
        arrays.same_width(rows, self._points)
        return rows

    def _search(
        self, queries: Any, k: int, *, progress: ProgressLike, threads: int | None, self_ids: Any = None
    ) -> Neighbors:
        k = arrays.check_k(k, self.n - (self_ids is not None), without_self=self_ids is not None)
        plan = self._given
        if plan is None:
            plan = make_plan(
                self.n,
                len(queries),
                self.d,
                k,
                dtype=self._points.dtype,
                metric=self.metric,
                threads=arrays.check_threads(threads) or self._threads,
                memory=self._memory,
            )
        else:
            _check_plan(plan, m=len(queries), k=k)
        if self._prepared is None:
            self._prepared = PreparedPoints(self._points, plan, progress)
        return search_prepared(queries, self._prepared, plan, self_ids=self_ids, progress=progress)[0]


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
    index = Index(points, metric=metric, method=method, device=device, threads=threads, memory=memory, plan=plan)
    rows = index._points
    own = np.arange(index.n, dtype=np.int64)
    if include_self:
        k = arrays.check_k(k, index.n, without_self=False)
        found = (
            _empty_like(rows, index.n)
            if k == 1
            else index._search(rows, k - 1, progress=progress, threads=threads, self_ids=own)
        )
        found = _with_self(found, rows, own, index.metric)
    else:
        found = index._search(rows, k, progress=progress, threads=threads, self_ids=own)
    return KNNGraph(
        indices=found.indices, distances=found.distances, metric=index.metric, method="exact", include_self=include_self
    )


def _empty_like(rows: Any, n: int) -> Neighbors:
    value = np.float64 if rows.dtype == np.float64 else np.float32
    return Neighbors(np.empty((n, 0), value), np.empty((n, 0), np.int32 if n < 2**31 else np.int64))


def _with_self(found: Neighbors, rows: Any, own: Any, metric: str) -> Neighbors:
    values = np.zeros((len(rows), 1))
    if metric == "inner_product":
        exact_values(metric, rows, rows, own[:, None], values)
    first = values.astype(found.distances.dtype)
    ids = own[:, None].astype(found.indices.dtype)
    return Neighbors(np.hstack([first, found.distances]), np.hstack([ids, found.indices]))


def _check_plan(plan: Plan, **facts: Any) -> None:
    """Refuse a plan that was made for another problem."""
    fields = dataclasses.asdict(plan)
    for name, value in facts.items():
        if fields[name] != value:
            raise ValueError(f"the plan was made for {name}={fields[name]!r}, but this search has {name}={value!r}")
