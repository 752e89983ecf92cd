"""Calls with distances of the caller: public functions hand them over, and the shared arguments are checked once."""

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
from tonari.core.results.radius_neighbors import RadiusNeighbors, nearest_of
from tonari.filters.arguments import NO_FILTERS, Given
from tonari.methods.call import Radius
from tonari.methods.options import Options
from tonari.metrics import get_metric
from tonari.metrics.names import PRECOMPUTED, is_function, name_of_function
from tonari.metrics.radius import limits_of
from tonari.user_metrics.cpu import nearest as by_nearness
from tonari.user_metrics.cpu import within as by_radius
from tonari.user_metrics.plan import GivenPlan, plan_given
from tonari.user_metrics.values import Allowed, FunctionValues, MatrixValues, Values

_METHODS, _DEVICES = ("auto", "exact"), ("auto", "cpu")
_NO_RADIUS = Radius()
_NONE: Any = object()  # default of `queries`, which means a self-join


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
    filters : Given
    radius : Radius
    """

    values: Values
    rows: Any
    threads: int | None
    memory: int | None
    progress: ProgressLike
    filters: Given
    radius: Radius

    @classmethod
    def of(
        cls,
        options: Options,
        filters: Given = NO_FILTERS,
        radius: Radius = _NO_RADIUS,
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
        return cls(values, first_rows, threads, memory, progress, filters, radius)

    def plan(self, k: int) -> GivenPlan:
        """Return the plan of a search for k neighbours, or for all points within a radius if k is 0."""
        return plan_given(self.values, k, self.memory)

    def handed_back(self, parts: Any) -> list[Any]:
        """Convert NumPy results to arrays of the caller's library."""
        side = inputs.side_of(self.rows, "queries")
        return [inputs.hand_back(part, side) for part in parts]

    def allowed(self) -> Allowed | None:
        """Return a function that says which pairs of a query and a point the filters allow; None without filters."""
        rules = self.filters.rules(self.values.m, self.values.n)
        if rules is None:
            return None

        def allowed(rows: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
            return rules.allowed(rows, np.broadcast_to(ids, np.broadcast_shapes(rows.shape, ids.shape)))

        return allowed

    def nearest(
        self,
        k: int,
        allowed: Allowed | None,
        *,
        own: bool = False,
        symmetric: bool = False,
        plan: GivenPlan | None = None,
    ) -> by_nearness.GivenLists:
        """Find the k nearest points of every query, by the plan for k or by another; see :mod:`tonari.user_metrics`."""
        plan = self.plan(k) if plan is None else plan
        how: dict[str, Any] = {"own": own, "symmetric": symmetric, "allowed": allowed}
        return by_nearness.nearest(self.values, k, plan, **how, threads=self.threads, progress=self.progress)

    def within(
        self, limits: Any, allowed: Allowed | None, *, own: bool = False, symmetric: bool = False, later: bool = False
    ) -> RadiusNeighbors:
        """Find all points within the limit of each query; distances are computed once only if all limits are equal."""
        symmetric = symmetric and bool((limits == limits[:1]).all())
        how: dict[str, Any] = {"own": own, "symmetric": symmetric, "later": later}
        return by_radius.within(self.values, limits, self.plan(0), **how, allowed=allowed, progress=self.progress)

    def with_ties(
        self, found: Neighbors, allowed: Allowed | None, *, own: bool = False, symmetric: bool = False
    ) -> RadiusNeighbors:
        """Return the k nearest points of each query and all others at the k-th distance; distances are recomputed."""
        limits = np.where(found.indices[:, -1] >= 0, found.distances[:, -1], np.inf)
        return self.within(limits, allowed, own=own, symmetric=symmetric)

    def limits(self) -> npt.NDArray[Any]:
        """Return for each query the largest distance within its radius."""
        values, metric = self.values, get_metric(self.values.name)
        return limits_of(metric, values.m, values.dtype, **self.radius._asdict())

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


P = ParamSpec("P")
R = TypeVar("R")

_ROWS, _OPTIONS = frozenset(("queries", "points")), frozenset(Options._fields)


def is_given(metric: Any) -> bool:
    """Whether the caller defines the distances: by a function, or by "precomputed" with rows of distances.

    >>> is_given("precomputed"), is_given(lambda a, B: abs(B - a).sum(axis=1)), is_given("euclidean")
    (True, True, False)
    """
    return metric.lower() == PRECOMPUTED if type(metric) is str else is_function(metric)


def on_given_values(answer: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wrap a public function so that `answer` is called instead if the metric is a function or "precomputed".

    `answer` takes a :class:`GivenCall`, with the filters and the radius, and those of the public function's other
    arguments that it supports. Any other argument with a value other than its default is refused.
    """
    accepted = set(inspect.signature(answer).parameters) - {"call"}
    known = accepted | _ROWS | _OPTIONS | set(Given._fields) | set(Radius._fields)

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
                if name not in known and value is not defaults[name]:
                    raise Unsupported(
                        f"{name}: is not supported if metric is a function or 'precomputed'; "
                        f"leave {name} out, or name one of tonari.metrics.METRICS"
                    )
            rows = {name: value for name, value in arguments.items() if name in _ROWS}
            inputs.warn_of_dropped(rows, "compute the distances of the pairs that are found in torch")
            options = Options(**{name: value for name, value in arguments.items() if name in _OPTIONS})
            others = {name: value for name, value in arguments.items() if name in accepted}
            radius = Radius(**{name: arguments[name] for name in Radius._fields if name in arguments})
            found: R = answer(GivenCall.of(options, Given.of(arguments), radius, **rows), **others)
            return found

        return asking

    return wrap
