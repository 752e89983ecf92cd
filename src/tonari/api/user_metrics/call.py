"""The arguments that public functions share, checked for distances that the caller defines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of
from tonari.filters.arguments import Given
from tonari.methods.options import Options
from tonari.metrics import get_metric
from tonari.metrics.names import name_of_function
from tonari.metrics.radius import limits_of
from tonari.user_metrics.cpu import within as by_radius
from tonari.user_metrics.plan import GivenPlan, plan_given
from tonari.user_metrics.values import Allowed, FunctionValues, MatrixValues, Values

_METHODS, _DEVICES = ("auto", "exact"), ("auto", "cpu")
_NONE: Any = object()  # the default of `queries`, which means a self-join


class GivenCall(NamedTuple):
    """The checked arguments that all public functions share.

    Attributes
    ----------
    values : Values
        The distances.
    rows : rows or matrix
        The caller's queries, or points in a self-join; results are in their library.
    threads, memory : int, optional
    progress : None, bool or callable(done, total)
    """

    values: Values
    rows: Any
    threads: int | None
    memory: int | None
    progress: ProgressLike

    @classmethod
    def of(
        cls,
        options: Options,
        *,
        points: Any = None,
        queries: Any = _NONE,
    ) -> GivenCall:
        """Check the arguments that all public functions share; a call without queries is a self-join."""
        metric = options.metric
        if options.method not in _METHODS:
            raise Unsupported(
                f"method={options.method!r}: a function or 'precomputed' as metric allows 'exact' alone, which "
                "computes all distances"
            )
        if options.device not in _DEVICES:
            raise Unsupported(
                f"device={options.device!r}: a function or 'precomputed' as metric is searched on the CPU alone; leave "
                "device out"
            )
        threads, own = inputs.check_threads(options.threads), queries is _NONE
        first_rows = points if own else queries
        if type(metric) is str:
            values: Values = MatrixValues(_matrix(first_rows, points, own=own))
        else:
            rows = inputs.as_floats(inputs.as_rows(first_rows, "points" if own else "queries", check_values=False))
            base = rows
            if first_rows is not points:
                base = inputs.as_floats(inputs.as_rows(points, "points", check_values=False))
            inputs.same_width(rows, base)
            values = FunctionValues(metric, rows, base, name_of_function(metric))
        memory, progress = inputs.parse_memory(options.memory), inputs.check_progress(options.progress)
        return cls(values, first_rows, threads, memory, progress)

    def plan(self, k: int) -> GivenPlan:
        """Return the plan of a search for k neighbours, or for all points within a radius if k is 0."""
        return plan_given(self.values, k, self.memory)

    def handed_back(self, parts: Any) -> list[Any]:
        """Convert NumPy results to arrays of the caller's library."""
        side = inputs.side_of(self.rows, "queries")
        return [inputs.hand_back(part, side) for part in parts]

    def allowed(self, given: Given) -> Allowed | None:
        """Return a function that says which pairs of a query and a point the filters allow; None without filters."""
        rules = given.rules(self.values.m, self.values.n)
        if rules is None:
            return None

        def allowed(rows: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
            return rules.allowed(rows, np.broadcast_to(ids, np.broadcast_shapes(rows.shape, ids.shape)))

        return allowed

    def with_ties(
        self, found: Neighbors, allowed: Allowed | None, *, own: bool = False, symmetric: bool = False
    ) -> RadiusNeighbors:
        """Return the k nearest points of each query and all others at the k-th distance; distances are recomputed."""
        limits = np.where(found.indices[:, -1] >= 0, found.distances[:, -1], np.inf)
        symmetric = symmetric and bool((limits == limits[:1]).all())
        return by_radius.within(
            *(self.values, limits, self.plan(0)),
            own=own,
            symmetric=symmetric,
            allowed=allowed,
            progress=self.progress,
        )

    def limits(self, radius: Any, min_similarity: Any, closed: Any) -> npt.NDArray[Any]:
        """Return for each query the largest distance within its radius."""
        values, metric = self.values, get_metric(self.values.name)
        return limits_of(metric, values.m, values.dtype, radius=radius, min_similarity=min_similarity, closed=closed)

    def listed(self, found: RadiusNeighbors, max_neighbors: Any) -> RadiusNeighbors:
        """Cut radius lists to their nearest `max_neighbors` points, and convert them to the caller's array library."""
        return RadiusNeighbors(*self.handed_back(found if max_neighbors is None else nearest_of(found, max_neighbors)))


def _matrix(table: Any, points: Any, *, own: bool) -> npt.NDArray[Any]:
    """Check the matrix of a "precomputed" metric, which may be a memory map, and return it."""
    name = "points" if own else "queries"
    if not own and points is not None:
        raise ValueError(
            "points: metric='precomputed' takes the (m, n) distances in the place of the queries, and points=None"
        )
    if inputs.place_of(table, name) is not None:
        raise ValueError(f"{name}: distances are on {inputs.place_of(table, name)}, expected host memory; copy them")
    if hasattr(table, "tocsr"):
        raise TypeError(f"{name}: is sparse, expected all distances; use .toarray(), or tonari.KNNGraph.from_csr")
    inputs.refuse_masked(table, name)
    matrix = inputs.as_floats(inputs.held(table))
    if matrix.dtype.kind not in "iuf":
        raise TypeError(f"{name}: distances are {matrix.dtype}, expected numbers")
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise ValueError(f"{name}: distances have the shape {matrix.shape}, expected (m, n): a row for each query")
    if own and matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name}: distances have the shape {matrix.shape}, expected (n, n): a graph has the distances of all "
            "points to all points; for other queries use tonari.search(distances, None, k, metric='precomputed')"
        )
    return matrix
