"""The problem, checked: the one place where sizes, dtypes and limits are looked at before planning."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.core.problem import Problem
from tonari.inputs.arguments import check_no_threads
from tonari.metrics import TritonFunction, get_metric, is_own


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
    """Check what is asked for.

    Parameters
    ----------
    n, m, d, k, metric, self_join, devices, host_points, host_queries
        As :class:`tonari.core.problem.Problem` has them.
    dtype, query_dtype : dtype or its name
        Of the points and, if it differs, of the queries.
    threads : int, optional
    memory : int or str, optional
        Bytes, or a text such as "2GB".

    Raises
    ------
    TypeError
        A number that is not whole.
    ValueError
        A problem that no method can solve, with the reason.

    Examples
    --------
    >>> make_problem(1000, 10, 16, 5, dtype="float32", metric="euclidean", memory="1MB").memory
    1000000
    """
    name = get_metric(metric).name
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
        metric=name,
        self_join=self_join,
        devices=devices,
        host_points=host_points,
        host_queries=host_queries,
        threads=inputs.check_threads(threads),
        memory=inputs.parse_memory(memory),
    )


def refuse_own_metric(problem: Problem) -> str | None:
    """Why a method that knows metrics by name cannot solve a problem; None if it can."""
    if is_own(problem.metric):
        return f"metric {problem.metric!r}: a Triton function is supported by method='nn-descent' on CUDA alone"
    return None


def _checked_name(dtype: npt.DTypeLike) -> str:
    kind = inputs.dtype_of(dtype)
    if kind not in inputs.ACCEPTED:
        raise ValueError(f"dtype {kind} is not supported; expected one of {', '.join(inputs.ACCEPTED_NAMES)}")
    return inputs.dtype_name(kind)
