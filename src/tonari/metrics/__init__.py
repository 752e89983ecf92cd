"""Metrics: what is compared, and in which of two forms.

    gemm form         score(q, x) = a(x) - 2 <q', x'>     a matrix product ranks; matrix units apply
                      euclidean, sqeuclidean, cosine, correlation, inner_product
    elementwise form  score(q, x) = sum or max of f(q_i, x_i)
                      l1, linf, chi2

Formulas, zero vectors and rounding are defined by :mod:`tonari.metrics.reference`.

A Triton function f is an elementwise metric of its own, for NN-Descent on CUDA: the value is the sum of f(q_i, x_i)
over all i, in float64.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class Metric:
    """One metric: its name, its form, whether larger is nearer, whether it refuses negative input, its own function."""

    name: str
    form: Literal["gemm", "elementwise"]
    descending: bool = False
    nonnegative: bool = False
    function: Any = None


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("euclidean", "gemm"),
        Metric("sqeuclidean", "gemm"),
        Metric("cosine", "gemm"),
        Metric("correlation", "gemm"),
        Metric("inner_product", "gemm", descending=True),
        Metric("l1", "elementwise"),
        Metric("linf", "elementwise"),
        Metric("chi2", "elementwise", nonnegative=True),
    )
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

    Examples
    --------
    >>> get_metric("inner_product").descending
    True
    """
    if type(metric).__module__.startswith("triton."):
        name = OWN + metric.__name__
        _functions[name] = metric
        return Metric(name, "elementwise", function=metric)
    if isinstance(metric, str):
        if metric in METRICS:
            return METRICS[metric]
        if metric.startswith(OWN) and metric[len(OWN) :].isidentifier():
            return Metric(metric, "elementwise", function=_functions.get(metric))
    near = difflib.get_close_matches(str(metric), METRICS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown metric {metric!r}; expected one of {', '.join(METRICS)}.{hint}")


def is_own(metric: str) -> bool:
    """Whether a metric is a Triton function's."""
    return metric.startswith(OWN)


def term_of(metric: str) -> Any:
    """The Triton function of a metric, None for those that kernels have; ValueError where it is not known here."""
    if not is_own(metric):
        return None
    function = get_metric(metric).function
    if function is None:
        raise ValueError(f"metric {metric!r} is a Triton function that this process has not seen: pass the function")
    return function
