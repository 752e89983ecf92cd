"""Checks of a Problem: sizes, dtypes and limits, which no other module checks before planning."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.inputs.arguments import check_no_threads
from tonari.metrics import Metric, TritonFunction, get_metric
from tonari.metrics.names import GIVEN_VERBS, is_own
from tonari.metrics.transforms.change import instead_of


def make_problem(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike,
    query_dtype: npt.DTypeLike | None = None,
    metric: str | TritonFunction,
    self_join: bool = False,
    devices: tuple[str, ...] = (),
    host_points: bool = True,
    host_queries: bool = True,
    threads: Any = None,
    memory: Any = None,
) -> Problem:
    """Check the sizes and parameters of a search or graph, and return them as a Problem.

    Parameters
    ----------
    n, m, d, k, metric, self_join, devices, host_points, host_queries
        See :class:`tonari.core.problem.Problem`.
    dtype, query_dtype : dtype or its name
        The dtype of the points, and the dtype of the queries if it differs.
    threads : int, optional
    memory : int or str, optional
        Bytes, or a string such as "2GB".

    Raises
    ------
    TypeError
        A size is not a whole number.
    ValueError
        No method can solve the problem; the message says why.

    Examples
    --------
    >>> make_problem(1000, 10, 16, 5, dtype="float32", metric="euclidean", memory="1MB").memory
    1000000
    """
    record = get_metric(metric)
    refuse_changed(record)
    for called, value in (("n", n), ("m", m), ("d", d)):
        if value < 1:
            raise ValueError(f"{called} must be at least 1, got {value}")
    if self_join and m != n:
        raise ValueError(f"a self-join has as many queries as points, got m={m} and n={n}")
    k = inputs.check_k(k, n - self_join, without_self=self_join)
    dtypes = [_checked_name(dtype)]
    dtypes.append(dtypes[0] if query_dtype is None else _checked_name(query_dtype))
    if devices:
        check_no_threads(threads, devices)
    return Problem(
        n=n,
        m=m,
        d=d,
        k=k,
        dtype=dtypes[0],
        query_dtype=dtypes[1],
        metric=record.name,
        self_join=self_join,
        devices=devices,
        host_points=host_points,
        host_queries=host_queries,
        threads=inputs.check_threads(threads),
        memory=inputs.parse_memory(memory),
    )


def refuse_changed(metric: Metric) -> None:
    """Raise Unsupported if a metric requires transformed rows, or distances that the caller passes."""
    if metric.given:
        raise Unsupported(f"metric={metric.name!r} stands for distances of the caller, {GIVEN_VERBS}")
    if not metric.changed:
        return
    rows, base = instead_of(metric.name)
    raise Unsupported(
        f"metric={metric.name!r} compares changed rows, which search, Index, knn_graph, kth_distance, pairs and the "
        f"radius functions do by themselves; here pass {rows}, with metric={base!r}"
    )


def refuse_metric(problem: Problem) -> str | None:
    """Return the reason why a method for plain rows of numbers refuses a problem's metric; None if it does not."""
    if get_metric(problem.metric).bits:
        return f"metric {problem.metric!r} compares bits: use method='bits' or 'auto'"
    if get_metric(problem.metric).missing:
        return f"metric {problem.metric!r} compares rows with missing values: use method='missing' or 'auto'"
    if is_own(problem.metric):
        return f"metric {problem.metric!r}: a Triton function is supported by method='nn-descent' on CUDA alone"
    return None


def usual_dtype(metric: str | TritonFunction) -> str:
    """Return the default dtype of rows for a metric, for problems that are stated without arrays."""
    return "uint8" if get_metric(metric).bits else "float32"


def _checked_name(dtype: npt.DTypeLike) -> str:
    kind = inputs.dtype_of(dtype)
    if kind not in inputs.ACCEPTED:
        raise ValueError(f"dtype {kind} is not supported; expected one of {', '.join(inputs.ACCEPTED_NAMES)}")
    return inputs.dtype_name(kind)
