"""The problem, checked: what every method may rely on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.problem import Problem
from tonari.inputs.arguments import check_flag, check_k, check_threads, check_whole, parse_memory
from tonari.inputs.rows import ACCEPTED
from tonari.metrics import get_metric


def make_problem(
    n: Any,
    m: Any,
    d: Any,
    k: Any,
    *,
    dtype: npt.DTypeLike = "float32",
    query_dtype: npt.DTypeLike | None = None,
    metric: Any = "euclidean",
    self_join: bool = False,
    devices: tuple[str, ...] = (),
    host_points: bool = True,
    host_queries: bool = True,
    threads: Any = None,
    memory: Any = None,
    free_bytes: int | None = None,
) -> Problem:
    """Check what is asked and what it may use.

    Parameters are those of :class:`tonari.core.problem.Problem`, as a caller may give them.

    Raises
    ------
    TypeError, ValueError
        Sizes that are no whole numbers or too small, k out of range, a dtype or metric that is not known, threads for a
        search on CUDA, a memory budget that cannot be read.

    Examples
    --------
    >>> make_problem(1000, 10, 16, 5, memory="2GB").memory
    2000000000
    >>> make_problem(10, 10, 2, 10, self_join=True)
    Traceback (most recent call last):
    ValueError: k=10: the largest k is 9, as there are 10 points and a point is not its own neighbour
    """
    for name, value in (("n", n), ("m", m), ("d", d)):
        check_whole(name, value, least=1)
    check_flag(self_join, "self_join")
    if self_join and m != n:
        raise ValueError(f"a self-join has as many queries as points, got m={m} and n={n}")
    k = check_k(k, n - self_join, without_self=self_join)
    kind = np.dtype(dtype)
    if kind not in ACCEPTED:
        raise ValueError(f"dtype {kind} is not searched; expected one of {', '.join(map(str, ACCEPTED))}")
    count = check_threads(threads)
    if devices and count is not None:
        raise ValueError(f"threads={threads}: the search runs on {', '.join(devices)}; leave threads out")
    return Problem(
        n=int(n),
        m=int(m),
        d=int(d),
        k=k,
        dtype=kind.name,
        query_dtype=kind.name if query_dtype is None else np.dtype(query_dtype).name,
        metric=get_metric(metric).name,
        self_join=self_join,
        devices=devices,
        host_points=host_points,
        host_queries=host_queries,
        threads=count,
        memory=parse_memory(memory),
        free_bytes=free_bytes,
    )
