"""Metrics: what is compared, one record each.

    squares    value(q, x) = S((q - x)^2), or its root         euclidean, sqeuclidean
    products   S(q x), larger is nearer                        inner_product
    angles     1 - S(q x) / (|q| |x|)                          cosine, correlation
    terms      sum or maximum of f(q_i, x_i)                   l1, linf, chi2, canberra

In the first three families a matrix product ranks, and matrix units apply (the "gemm" form): score(q, x) = a(x) -
2 <q', x'>. The last is the elementwise form. A Triton function f is an elementwise metric of its own, for NN-Descent on
CUDA: the value is the sum of f(q_i, x_i) over all i, in float64.

Adding a metric
---------------
Code asks the fields of the record and never the name, so a new elementwise metric is written in four places: its record
below, its value in ``definitions.py``, its terms on the CPU in ``native/core/metrics.hpp`` and those on CUDA in
``kernels/terms.py``; ``docs/exactness.md`` argues its bounds. Tests run over :data:`METRICS` and find it there. What is
neither a product of rows nor a sum or maximum of terms has no place here: :data:`UNSUPPORTED` says why.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from tonari.core.errors import Unsupported
from tonari.metrics import definitions
from tonari.metrics.definitions import Float64

if TYPE_CHECKING:
    from tonari.metrics.kernels.terms import Terms


@dataclass(frozen=True)
class Metric:
    """One metric: everything that differs by metric.

    Kernels get a record as a constant and ask its numbers and truth values. These, which ``repr`` shows, are all that a
    compiled kernel depends on.

    Attributes
    ----------
    name : str
    family : str
        "squares", "products", "angles" or "terms".
    value : callable, optional
        Its definition (``definitions.py``).
    root_of : str
        The metric whose square root it is, if any.
    centred : bool
        Whether rows are compared less their means.
    nonnegative : bool
        Whether it refuses negative input.
    squared : bool
        Whether values grow with the square of lengths.
    in_trees : bool
        Whether a k-d tree bounds it: terms are ``abs(q - x)`` or its square.
    self_value : float, optional
        The value of every row with itself; None where that depends on the row.
    cluster_rows : callable, optional
        What takes rows to where squared L2 orders pairs more as this metric does, for NN-Descent's clusters.
    maximum : bool
        Of terms: whether the value is the largest, instead of their sum.
    divides : bool
        Of terms: whether one takes a division, and with it the registers of several.
    scale_free : bool
        Of terms: f(c q, c x) = f(q, x), where other terms grow with c.
    stretch : float
        Of terms: ``abs(f(q, x) - f(q, y))`` is at most so many times ``difference(x, y)`` (``kernels/terms.py``).
    underflow : float
        What a term of the definition may lose below the range of float64.
    function : triton.JITFunction, optional
        The caller's own, which makes the metric.
    """

    name: str
    family: Literal["squares", "products", "angles", "terms"]
    value: Callable[[Float64, Float64], Float64] | None = field(default=None, repr=False)
    root_of: str = ""
    centred: bool = False
    nonnegative: bool = False
    squared: bool = False
    in_trees: bool = False
    self_value: float | None = 0.0
    cluster_rows: Callable[[Float64], Float64] | None = field(default=None, repr=False)
    maximum: bool = False
    divides: bool = False
    scale_free: bool = False
    stretch: float = 1.0
    underflow: float = 2.0**-1074
    function: Any = field(default=None, repr=False)

    @property
    def form(self) -> Literal["gemm", "elementwise"]:
        """Whether a matrix product ranks, or every pair is compared element by element."""
        return "elementwise" if self.elementwise else "gemm"

    @property
    def squares(self) -> bool:
        return self.family == "squares"

    @property
    def products(self) -> bool:
        return self.family == "products"

    @property
    def angular(self) -> bool:
        return self.family == "angles"

    @property
    def elementwise(self) -> bool:
        return self.family == "terms"

    @property
    def descending(self) -> bool:
        """Whether larger is nearer."""
        return self.family == "products"

    @property
    def root(self) -> bool:
        return bool(self.root_of)

    @property
    def before_root(self) -> Metric:
        """The metric whose root it is, else itself."""
        return METRICS[self.root_of] if self.root_of else self

    @property
    def own(self) -> bool:
        """Whether it is a caller's Triton function: f(0, 0) may be anything."""
        return is_own(self.name)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("euclidean", "squares", definitions.euclidean, root_of="sqeuclidean", in_trees=True),
        Metric("sqeuclidean", "squares", definitions.sqeuclidean, squared=True, in_trees=True),
        Metric("cosine", "angles", definitions.cosine, squared=True),
        Metric("correlation", "angles", definitions.correlation, squared=True, centred=True),
        Metric("inner_product", "products", definitions.inner_product, self_value=None),
        Metric("l1", "terms", definitions.l1, in_trees=True),
        Metric("linf", "terms", definitions.linf, in_trees=True, maximum=True),
        Metric(
            "chi2",
            "terms",
            definitions.chi2,
            nonnegative=True,
            squared=True,
            cluster_rows=np.sqrt,  # the Hellinger distance
            divides=True,
            stretch=3.0,
            underflow=2.0**-536,
        ),
        Metric("canberra", "terms", definitions.canberra, divides=True, scale_free=True),
    )
}

# Metrics that people ask for and that have no place in the families above: why, and what to do instead.
UNSUPPORTED = {
    "braycurtis": "it is a ratio of two sums, S|q - x| / S|q + x|, and neither a product of rows nor a sum or maximum "
    "of terms; for rows without negative values divide each by its sum and use metric='l1', which is then twice its "
    "value",
}


class TritonFunction(Protocol):
    """A function decorated by ``triton.jit``."""

    __name__: str


OWN = "triton:"  # how the names of functions begin
_functions: dict[str, Any] = {}


def get_metric(metric: Any) -> Metric:
    """The metric called so, or the one that a Triton function makes.

    A function is known by its name from then on, until another of that name comes: plans, graphs and files have the
    name. There it may be of another process, and `function` is None.

    Raises
    ------
    ValueError
        If there is no such metric; the message lists all names and the nearest one.
    Unsupported
        If it is one of :data:`UNSUPPORTED`; the message says why, and what to do instead.

    Examples
    --------
    >>> get_metric("inner_product").descending
    True
    """
    if type(metric).__module__.startswith("triton."):
        name = OWN + metric.__name__
        _functions[name] = metric
        return _own(name, metric)
    if isinstance(metric, str):
        if metric in METRICS:
            return METRICS[metric]
        if metric.startswith(OWN) and metric[len(OWN) :].isidentifier():
            return _own(metric, _functions.get(metric))
        if metric in UNSUPPORTED:
            raise Unsupported(f"metric {metric!r} is not supported: {UNSUPPORTED[metric]}")
    near = difflib.get_close_matches(str(metric), METRICS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown metric {metric!r}; expected one of {', '.join(METRICS)}.{hint}")


def is_own(metric: str) -> bool:
    """Whether a metric is a Triton function's."""
    return metric.startswith(OWN)


def cuda_terms(metric: str) -> Terms:
    """The Triton functions of an elementwise metric; :data:`tonari.metrics.kernels.terms.NONE` for the other families.

    Raises
    ------
    ValueError
        If it is a Triton function's that this process has not seen.
    """
    from tonari.metrics.kernels import terms

    record = get_metric(metric)
    if not record.own:
        return terms.TERMS[metric] if record.elementwise else terms.NONE
    if record.function is None:
        raise ValueError(f"metric {metric!r} is a Triton function that this process has not seen: pass the function")
    return terms.Terms(term=record.function)


def _own(name: str, function: Any) -> Metric:
    return Metric(name, "terms", divides=True, function=function)
