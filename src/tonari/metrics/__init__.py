"""Metrics: what is compared, and in which of two forms.

    gemm form         score(q, x) = a(x) - 2 <q', x'>     a matrix product ranks; matrix units apply
                      euclidean, sqeuclidean, cosine, correlation, inner_product
    elementwise form  score(q, x) = sum or max of f(q_i, x_i)
                      l1, linf, chi2

Formulas, zero vectors and rounding are defined by :mod:`tonari.reference`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One metric: its name, its form, whether larger is nearer, and whether it refuses negative input."""

    name: str
    form: Literal["gemm", "elementwise"]
    descending: bool = False
    nonnegative: bool = False


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


def get_metric(name: str) -> Metric:
    """The metric called `name`.

    Raises
    ------
    ValueError
        If there is no such metric; the message lists all names and the nearest one.

    Examples
    --------
    >>> get_metric("inner_product").descending
    True
    """
    if isinstance(name, str) and name in METRICS:
        return METRICS[name]
    near = difflib.get_close_matches(str(name), METRICS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown metric {name!r}; expected one of {', '.join(METRICS)}.{hint}")
