"""Metrics: each is a record, and belongs to one of these families.

    squares    S((q - x)^2), or its root                       euclidean, sqeuclidean
    products   S(q x), where larger is nearer                  inner_product
    angles     1 - S(q x) / (|q| |x|); small values are        cosine, correlation
               computed as half the squared chord
    terms      sum or maximum of f(q_i, x_i)                   l1, linf, chi2, canberra, power:p
    changed    function of another metric of transformed rows  haversine, minkowski:p, hellinger, braycurtis,
                                                               mahalanobis, seuclidean
    bits       between rows of bits, packed in bytes           hamming, jaccard
    missing    between rows with missing values (NaN)          nan_euclidean
    given      distances that the caller passes                precomputed, function:NAME

S is the sum over all columns. The first three families have the "gemm" form: a matrix product on matrix units gives
score(q, x) = a(x) - 2 <q', x'>, which orders the points. "terms" has the "elementwise" form. A user's Triton function f
is an additional elementwise metric, supported by NN-Descent on CUDA: its value is the sum of f(q_i, x_i) in float64.
"bits" has neither form, since its rows are not numbers: it has its own method (``tonari.bits``) and table
(:data:`BIT_METRICS`). So has "missing", a ratio of two sums over the columns that both rows have (``tonari.missing``,
:data:`MISSING_METRICS`). "given" distances are a matrix or a function of rows (``tonari.user_metrics``); graphs and
files store only the name.

The API transforms the rows for "changed" metrics, and for metrics with weights or a matrix (``transforms/``); the code
below it compares the transformed rows by one of the other metrics. The records of "changed" metrics are in
:data:`CHANGED`, and in :data:`MAPPED` if the transformation depends on an argument of the caller.

Adding a metric
---------------
Code tests fields of the record, never its name. A new elementwise metric therefore needs only four additions: its
record below, its value in ``definitions.py``, its CPU terms in ``native/core/metrics.hpp`` and its CUDA terms in
``kernels/terms.py``. ``docs/exactness.md`` derives its error bounds. Tests iterate over :data:`METRICS`. Metrics that
are neither a product of rows nor a sum or maximum of terms cannot be added this way; ``UNSUPPORTED`` in ``names.py``
lists some, with reasons.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from tonari.core.errors import Unsupported
from tonari.core.process.caches import emptied_by
from tonari.metrics import definitions
from tonari.metrics.definitions import Float64
from tonari.metrics.names import (
    ALIASES,
    FUNCTION,
    GIVEN_VERBS,
    OWN,
    PRECOMPUTED,
    UNSUPPORTED,
    is_own,
    name_of_function,
    of_minkowski,
)

if TYPE_CHECKING:
    from tonari.metrics.kernels.terms import Terms


@dataclass(frozen=True)
class Metric:
    """A metric: a record of everything in which metrics differ.

    Kernels receive a record as a constant and use its numbers and flags. A compiled kernel depends only on these
    fields, and ``repr`` shows exactly these fields.

    Attributes
    ----------
    family : str
        "squares", "products", "angles", "terms", "changed", "bits", "missing" or "given".
    value : callable, optional
        The definition, a function from ``definitions.py``.
    root_of : str
        The name of the metric whose square root this metric is; "" if none.
    centred : bool
        Whether each row's mean is subtracted first.
    nonnegative : bool
        Whether negative input is refused.
    power : float
        The exponent p such that values grow like the p-th power of lengths.
    in_trees : bool
        Whether a k-d tree can bound the metric: its terms must increase with ``abs(q - x)``.
    self_value : float, optional
        The value between a row and itself; None if it depends on the row.
    cluster_rows : callable, optional
        A transformation of rows for the clusters of NN-Descent, after which squared L2 distances order pairs more like
        this metric.
    maximum : bool
        Family "terms": whether the value is the largest term instead of the sum.
    divides : bool
        Family "terms": whether a term contains a division, which needs more registers.
    degree : float
        Family "terms": f(c q, c x) = c**degree f(q, x).
    stretch : float
        Family "terms": ``abs(f(q, x) - f(q, y))`` is at most `stretch` times ``difference(x, y)``
        (``kernels/terms.py``), for elements of at most `largest`.
    largest : float
        Family "terms": the largest magnitude of elements for which `stretch` holds. Rows with larger scaled elements
        are resolved by exact values.
    underflow : float
        The largest error of a term of the definition through underflow in float64.
    function : triton.JITFunction, optional
        The user's Triton function that defines the metric.
    """

    name: str
    family: Literal["squares", "products", "angles", "terms", "changed", "bits", "missing", "given"]
    value: Callable[[Float64, Float64], Float64] | None = field(default=None, repr=False)
    root_of: str = ""
    centred: bool = False
    nonnegative: bool = False
    power: float = 1.0
    in_trees: bool = False
    self_value: float | None = 0.0
    cluster_rows: Callable[[Float64], Float64] | None = field(default=None, repr=False)
    maximum: bool = False
    divides: bool = False
    degree: float = 1.0
    stretch: float = 1.0
    largest: float = math.inf
    underflow: float = 2.0**-1074
    function: Any = field(default=None, repr=False)

    @cached_property  # all properties are cached, since a search of microseconds reads them many times
    def form(self) -> Literal["gemm", "elementwise"]:
        """ "gemm" if scores from a matrix product order the points, "elementwise" if sums or maxima of terms do."""
        return "elementwise" if self.elementwise else "gemm"

    @cached_property
    def bits(self) -> bool:
        """Whether rows are bits, packed in bytes."""
        return self.family == "bits"

    @cached_property
    def missing(self) -> bool:
        """Whether rows may have missing values, NaN."""
        return self.family == "missing"

    @cached_property
    def squares(self) -> bool:
        return self.family == "squares"

    @cached_property
    def products(self) -> bool:
        return self.family == "products"

    @cached_property
    def angular(self) -> bool:
        return self.family == "angles"

    @cached_property
    def elementwise(self) -> bool:
        return self.family == "terms"

    @cached_property
    def changed(self) -> bool:
        """Whether searches must replace the metric by another metric of transformed rows."""
        return self.family == "changed"

    @cached_property
    def given(self) -> bool:
        """Whether the caller passes the distances, as a matrix or a function."""
        return self.family == "given"

    @cached_property
    def descending(self) -> bool:
        """Whether a larger value means nearer."""
        return self.family == "products"

    @cached_property
    def root(self) -> bool:
        return bool(self.root_of)

    @cached_property
    def before_root(self) -> Metric:
        """The metric whose square root this metric is, or this metric itself if it is not a root."""
        return METRICS[self.root_of] if self.root_of else self

    def lengths(self, values: Any) -> Any:
        """Convert non-negative values of this metric to values that are proportional to lengths."""
        if self.power == 1:
            return values
        return np.sqrt(values) if self.power == 2 else values ** (1 / self.power)

    @cached_property
    def own(self) -> bool:
        """Whether the metric is a user's Triton function, for which f(0, 0) may have any value."""
        return is_own(self.name)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("euclidean", "squares", definitions.euclidean, root_of="sqeuclidean", in_trees=True),
        Metric("sqeuclidean", "squares", definitions.sqeuclidean, power=2.0, in_trees=True),
        Metric("cosine", "angles", definitions.cosine, power=2.0),
        Metric("correlation", "angles", definitions.correlation, power=2.0, centred=True),
        Metric("inner_product", "products", definitions.inner_product, self_value=None),
        Metric("l1", "terms", definitions.l1, in_trees=True),
        Metric("linf", "terms", definitions.linf, in_trees=True, maximum=True),
        Metric(
            "chi2",
            "terms",
            definitions.chi2,
            nonnegative=True,
            power=2.0,
            # clusters by L2 distances of square roots, which are Hellinger distances up to a factor
            cluster_rows=np.sqrt,
            divides=True,
            stretch=3.0,
            underflow=2.0**-536,
        ),
        Metric("canberra", "terms", definitions.canberra, divides=True, degree=0.0),
        Metric("power:0.5", "terms", definitions.power_half, power=0.5, in_trees=True, degree=0.5),
        Metric(
            "power:1.5",
            "terms",
            definitions.power_three_halves,
            power=1.5,
            in_trees=True,
            degree=1.5,
            stretch=3.0,
            largest=2.0,
        ),
        Metric(
            "power:3", "terms", definitions.power_three, power=3.0, in_trees=True, degree=3.0, stretch=48.0, largest=2.0
        ),
        Metric(
            "power:4", "terms", definitions.power_four, power=4.0, in_trees=True, degree=4.0, stretch=256.0, largest=2.0
        ),
    )
}

# Metrics that are computed as another metric of transformed rows (transforms/).
CHANGED: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("haversine", "changed", definitions.haversine),
        Metric("minkowski:0.5", "changed", definitions.minkowski_half),
        Metric("minkowski:1.5", "changed", definitions.minkowski_three_halves),
        Metric("minkowski:3", "changed", definitions.minkowski_three),
        Metric("minkowski:4", "changed", definitions.minkowski_four),
        Metric("hellinger", "changed", definitions.hellinger),
        Metric("braycurtis", "changed", definitions.braycurtis),
    )
}
# "changed" metrics that need a matrix or variances from the caller.
MAPPED: dict[str, Metric] = {
    metric.name: metric for metric in (Metric("mahalanobis", "changed"), Metric("seuclidean", "changed"))
}
# Metrics between rows of bits, which are packed uint8 or bool. Returned values are float32.
BIT_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (Metric("hamming", "bits", definitions.hamming), Metric("jaccard", "bits", definitions.jaccard))
}
# Metrics between rows with missing values (NaN).
MISSING_METRICS: dict[str, Metric] = {
    metric.name: metric for metric in (Metric("nan_euclidean", "missing", definitions.nan_euclidean),)
}
_NAMED = METRICS | CHANGED | MAPPED | BIT_METRICS | MISSING_METRICS


class TritonFunction(Protocol):
    """A function decorated by ``triton.jit``."""

    __name__: str


_functions: dict[str, Any] = {}
emptied_by(_functions.clear)


def get_metric(metric: Any) -> Metric:
    """Return the metric with a name or an alias, or the metric that a Triton function defines.

    A Triton function is registered under its name, replacing an earlier one of the same name; plans, graphs and files
    store only the name. A name that starts with "triton:" is accepted even if this process has not registered the
    function, as in a file that another process wrote; the `function` of the returned metric is then None.

    Raises
    ------
    ValueError
        The name is unknown; the message lists all names and suggests the closest one.
    Unsupported
        The metric is one of ``UNSUPPORTED`` (the message has the reason and an alternative), or a Minkowski
        distance with a p that is not in ``MINKOWSKI``.

    Examples
    --------
    >>> get_metric("inner_product").descending
    True
    >>> get_metric("Manhattan").name
    'l1'
    >>> get_metric("minkowski:3.0").name, get_metric("minkowski:2").name
    ('minkowski:3', 'euclidean')
    """
    if isinstance(metric, str):
        if metric in _NAMED:
            return _NAMED[metric]
        if metric.startswith(OWN) and metric[len(OWN) :].isidentifier():
            return _own(metric, _functions.get(metric))
        plain = metric.lower()
        if (name := ALIASES.get(plain, plain)) in _NAMED:
            return _NAMED[name]
        if plain.partition(":")[0] == "minkowski":
            return _NAMED[of_minkowski(metric)]
        if plain == PRECOMPUTED or metric.startswith(FUNCTION):
            return Metric(plain if plain == PRECOMPUTED else metric, "given", self_value=None)
        if plain in UNSUPPORTED:
            raise Unsupported(f"metric {metric!r} is not supported: {UNSUPPORTED[plain]}")
    elif type(metric).__module__.startswith("triton."):
        name = OWN + metric.__name__
        _functions[name] = metric
        return _own(name, metric)
    elif callable(metric):
        raise Unsupported(f"metric={name_of_function(metric)!r} is a function, {GIVEN_VERBS}")
    near = difflib.get_close_matches(str(metric).lower(), [*_NAMED, *ALIASES], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else " tonari.search and knn_graph take a function f(a, B), too."
    raise ValueError(f"unknown metric {metric!r}; expected one of {', '.join(_NAMED)}.{hint}")


def cuda_terms(metric: str) -> Terms:
    """Return the Triton functions of an elementwise metric, or ``kernels.terms.NONE`` for the other families.

    Raises
    ------
    ValueError
        The metric is a user's Triton function that has not been registered in this process.
    """
    from tonari.metrics.kernels import terms

    record = get_metric(metric)
    if not record.own:
        return terms.TERMS[record.name] if record.elementwise else terms.NONE
    if record.function is None:
        raise ValueError(f"metric {metric!r} is a Triton function that this process has not seen: pass the function")
    return terms.Terms(term=record.function)


def _own(name: str, function: Any) -> Metric:
    return Metric(name, "terms", divides=True, function=function)
