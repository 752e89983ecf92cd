"""Public functions with distances that the caller defines: by a function of rows, or by a matrix of all distances.

:mod:`tonari.given` computes the answers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of
from tonari.core.trail import recording
from tonari.filters.arguments import Given, shared_mask
from tonari.filters.ties import are_all
from tonari.given.cpu import nearest as by_nearness
from tonari.given.cpu import within as by_radius
from tonari.given.plan import GivenPlan, plan_given
from tonari.given.values import Allowed, FunctionValues, MatrixValues, Values, strip
from tonari.graph.knn_graph import KNNGraph
from tonari.graph.lists import Lists
from tonari.metrics import get_metric
from tonari.metrics.names import PRECOMPUTED, is_function, name_of_function
from tonari.metrics.radius import limits_of

P = ParamSpec("P")
R = TypeVar("R")

_METHODS, _DEVICES = ("auto", "exact"), ("auto", "cpu")
_NONE: Any = object()  # no queries


def is_given(metric: Any) -> bool:
    """Whether a metric is a function of the caller, or "precomputed", which means that rows contain distances.

    >>> is_given("precomputed"), is_given(lambda a, B: abs(B - a).sum(axis=1)), is_given("euclidean")
    (True, True, False)
    """
    return metric.lower() == PRECOMPUTED if type(metric) is str else is_function(metric)


def on_given_values(answer: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wrap a public function so that `answer` is called instead if the metric is a function or "precomputed".

    `answer` takes a :class:`GivenCall`, and some of the function's other arguments. All others are refused unless they
    have their default values.
    """
    accepted = set(inspect.signature(answer).parameters) - {"call"}

    def wrap(verb: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(verb)
        defaults = {name: parameter.default for name, parameter in signature.parameters.items()}

        @functools.wraps(verb)
        def asking(*args: P.args, **kwargs: P.kwargs) -> R:
            metric = kwargs.get("metric", "euclidean")
            if not is_given(metric):
                if "symmetric" in kwargs and inputs.check_flag(kwargs["symmetric"], "symmetric"):
                    raise ValueError("symmetric: is for functions; all named metrics are symmetric. Leave it out")
                return verb(*args, **kwargs)
            arguments = signature.bind(*args, **kwargs).arguments
            for name, value in arguments.items():
                if name not in accepted | _SHARED and value is not defaults[name]:
                    raise Unsupported(
                        f"{name}: is not supported if metric is a function or 'precomputed'; "
                        f"leave {name} out, or name one of tonari.metrics.METRICS"
                    )
            rows = {name: value for name, value in arguments.items() if name in ("queries", "points")}
            inputs.warn_of_dropped(rows, "compute the distances of the pairs that are found in torch")
            shared = {name: arguments.pop(name) for name in _SHARED & arguments.keys()}
            found: R = answer(
                GivenCall.of(**shared), **{name: value for name, value in arguments.items() if name in accepted}
            )
            return found

        return asking

    return wrap


class GivenCall(NamedTuple):
    """The arguments that all public functions share, checked.

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
        *,
        metric: Any,
        points: Any = None,
        queries: Any = _NONE,
        method: Any = "auto",
        device: Any = "auto",
        threads: Any = None,
        memory: Any = None,
        progress: ProgressLike = None,
    ) -> GivenCall:
        """Check the arguments that all public functions share; a call without queries is a self-join."""
        if method not in _METHODS:
            raise Unsupported(
                f"method={method!r}: a function or 'precomputed' as metric allows 'exact' alone, which computes all "
                "distances"
            )
        if device not in _DEVICES:
            raise Unsupported(
                f"device={device!r}: a function or 'precomputed' as metric is searched on the CPU alone; leave device "
                "out"
            )
        threads, own = inputs.check_threads(threads), queries is _NONE
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
        return cls(values, first_rows, threads, inputs.parse_memory(memory), inputs.check_progress(progress))

    def plan(self, k: int) -> GivenPlan:
        """Return the plan of a search for k neighbours; 0 stands for all within a radius."""
        return plan_given(self.values, k, self.memory)

    def handed_back(self, parts: Any) -> list[Any]:
        """Return arrays in the library of the caller's."""
        side = inputs.side_of(self.rows, "queries")
        return [inputs.hand_back(part, side) for part in parts]

    def allowed(self, given: Given) -> Allowed | None:
        """Return which pairs of a query and a point the filters allow; None without filters."""
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
        """Return the limit of each query."""
        values, metric = self.values, get_metric(self.values.name)
        return limits_of(metric, values.m, values.dtype, radius=radius, min_similarity=min_similarity, closed=closed)

    def listed(self, found: RadiusNeighbors, max_neighbors: Any) -> RadiusNeighbors:
        """Return the lists, or the nearest points of each list, in the library of the caller's arrays."""
        return RadiusNeighbors(*self.handed_back(found if max_neighbors is None else nearest_of(found, max_neighbors)))


_SHARED = frozenset(("queries", "points", "metric", "method", "device", "threads", "memory", "progress"))


def search_given(
    call: GivenCall,
    k: int,
    *,
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    exclude_within: int | None = None,
    ties: str = "first",
) -> Neighbors | RadiusNeighbors:
    """Find the k nearest points of every query; see :func:`tonari.search`."""
    k = inputs.check_k(k, call.values.n, without_self=False)
    limits = Given(where, exclude, query_groups, point_groups, groups, exclude_within=exclude_within)
    allowed = call.allowed(limits)
    found = by_nearness.nearest(
        call.values, k, call.plan(k), allowed=allowed, threads=call.threads, progress=call.progress
    ).found
    if are_all(ties):
        return RadiusNeighbors(*call.handed_back(call.with_ties(found, allowed)))
    return Neighbors(*call.handed_back(found))


def graph_given(
    call: GivenCall,
    k: int,
    *,
    symmetric: bool = False,
    include_self: bool = False,
    where: Any = None,
    batch: Any = None,
    exclude_within: int | None = None,
    ties: str = "first",
) -> KNNGraph | RadiusNeighbors:
    """Build the graph of the k nearest other points; see :func:`tonari.knn_graph`."""
    values, include_self = call.values, inputs.check_flag(include_self, "include_self")
    symmetric, tied = _symmetric(symmetric, values), are_all(ties)
    if tied and include_self:
        raise ValueError("include_self: not with ties='all', whose lists have no column for the point itself")
    k = inputs.check_k(k, values.n - (not include_self), without_self=not include_self)
    shared_mask(where, values.n)
    allowed = call.allowed(Given(where=where, batch=batch, exclude_within=exclude_within))
    plan, others = call.plan(k), k - include_self
    with recording("knn_graph", values.n) as record:
        if others:
            found, own = by_nearness.nearest(
                *(values, others, plan),
                own=True,
                symmetric=symmetric,
                allowed=allowed,
                threads=call.threads,
                progress=call.progress,
            )
        else:
            places = (slice(i, i + 1) for i in range(values.n))
            own = np.concatenate([strip(values, i, i, 1, own=True)[0] for i in places])
            found = Neighbors.empty(values.n, 0, values.n, values.dtype)
        record.tried("all distances", values.n, values.n)
    if tied:
        return RadiusNeighbors(*call.handed_back(call.with_ties(found, allowed, own=True, symmetric=symmetric)))
    if include_self:
        _refuse_own_nan(own, values.name)
        every = np.arange(values.n, dtype=found.indices.dtype)
        found = Neighbors(np.column_stack([own, found.distances]), np.column_stack([every, found.indices]))
    lists = Neighbors(*call.handed_back(found))
    return KNNGraph.of_lists(Lists(lists, values.name, "exact", include_self, record=record))


def kth_given(call: GivenCall, k: int, *, symmetric: bool = False) -> Any:
    """Find the distance of every point to its k-th nearest other point; see :func:`tonari.kth_distance`."""
    values = call.values
    k, symmetric = inputs.check_k(k, values.n - 1, without_self=True), _symmetric(symmetric, values)
    found, _ = by_nearness.nearest(
        values, k, call.plan(k), own=True, symmetric=symmetric, threads=call.threads, progress=call.progress
    )
    return call.handed_back((found.distances[:, -1].copy(),))[0]


def radius_given(
    call: GivenCall,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: Any = True,
    max_neighbors: Any = None,
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    exclude_within: int | None = None,
) -> RadiusNeighbors:
    """Find all points within a radius of every query; see :func:`tonari.radius_search`."""
    most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
    limits = call.limits(radius, min_similarity, closed)
    allowed = call.allowed(Given(where, exclude, query_groups, point_groups, groups, exclude_within=exclude_within))
    found = by_radius.within(call.values, limits, call.plan(0), allowed=allowed, progress=call.progress)
    return call.listed(found, most)


def count_given(
    call: GivenCall,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: Any = True,
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    exclude_within: int | None = None,
) -> Any:
    """Count the points within a radius of every query; see :func:`tonari.radius_count`."""
    limits = call.limits(radius, min_similarity, closed)
    allowed = call.allowed(Given(where, exclude, query_groups, point_groups, groups, exclude_within=exclude_within))
    counts = by_radius.count(call.values, limits, call.plan(0), allowed=allowed, progress=call.progress)
    return call.handed_back((counts,))[0]


def radius_graph_given(
    call: GivenCall,
    radius: Any = None,
    *,
    symmetric: bool = False,
    min_similarity: Any = None,
    closed: Any = True,
    max_neighbors: Any = None,
    where: Any = None,
    batch: Any = None,
    exclude_within: int | None = None,
) -> RadiusNeighbors:
    """Find all other points within a radius of every point; see :func:`tonari.radius_graph`."""
    most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
    values, limits = call.values, call.limits(radius, min_similarity, closed)
    symmetric = _symmetric(symmetric, values) and bool((limits == limits[:1]).all())
    shared_mask(where, values.n)
    allowed = call.allowed(Given(where=where, batch=batch, exclude_within=exclude_within))
    found = by_radius.within(
        *(values, limits, call.plan(0)), own=True, symmetric=symmetric, allowed=allowed, progress=call.progress
    )
    return call.listed(found, most)


def pairs_given(
    call: GivenCall,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: Any = True,
    where: Any = None,
    exclude_within: int | None = None,
) -> Pairs:
    """Find all pairs of points within a radius of each other; see :func:`tonari.pairs`."""
    values = call.values
    limits = call.limits(radius, min_similarity, closed)
    mask, rule = shared_mask(where, values.n), call.allowed(Given(where=where, exclude_within=exclude_within))

    def allowed(rows: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        passed = np.ones(rows.shape, bool) if rule is None else rule(rows, others)
        return passed if mask is None else passed & mask.host[rows]

    found = by_radius.within(
        *(values, limits, call.plan(0)), own=True, later=True, allowed=allowed, progress=call.progress
    )
    return Pairs(*call.handed_back(pairs_of(found, 0)))


def _matrix(table: Any, points: Any, *, own: bool) -> npt.NDArray[Any]:
    """Check a matrix of distances, which may be a memory map."""
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


def _symmetric(symmetric: Any, values: Values) -> bool:
    """Check the argument; a matrix, whose distances cost nothing, is read whole."""
    return inputs.check_flag(symmetric, "symmetric") and not isinstance(values, MatrixValues)


def _refuse_own_nan(own: npt.NDArray[Any], name: str) -> None:
    if np.isnan(own).any():
        row = int(np.isnan(own).argmax())
        raise ValueError(
            f"metric={name!r}: the distance of point {row} to itself is NaN, which include_self=True puts into the "
            "graph; leave include_self out"
        )
