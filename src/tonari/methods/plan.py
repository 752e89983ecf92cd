"""The methods by name, and the plan of each: what the command line prints and what a caller may override."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.core.floats import in_default_floats
from tonari.core.plan import Plan
from tonari.exact.plan import plan_on_cpu
from tonari.inputs.arguments import check_no_threads
from tonari.metrics import TritonFunction, get_metric

METHODS = ("auto", "exact", "kdtree", "nn-descent")


@in_default_floats
def plan(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike = "float32",
    metric: str | TritonFunction = "euclidean",
    method: str = "auto",
    device: Any = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    self_join: bool = False,
    recall: float | None = None,
    seed: int | None = None,
    **overrides: Any,
) -> Plan:
    """Plan the search of the k nearest of n points for m queries in d dimensions.

    A pure function of its arguments and the machine: its instruction sets, TONARI_ISA, TONARI_NUM_THREADS, and the
    free memory of its CUDA devices.

    Parameters
    ----------
    n, m, d, k : int
    dtype : dtype of the points, or its name, such as "bfloat16"
    metric : str, or a Triton function as for :func:`tonari.knn_graph`
    method : "auto", "exact", "kdtree" or "nn-descent"
        "auto" plans brute force, as "exact" does: whether a k-d tree takes less time is known only from the data, at
        which a search with method="auto" looks. "nn-descent" plans an approximate graph, so that m is n.
    device : str or list of str
        "auto" and "cpu": the CPU. "cuda", "cuda:1", ["cuda:0", "cuda:1"], "cuda:all": points and queries are taken to
        lie in host memory, from where they are copied.
    threads : int, optional
        On the CPU. Default: TONARI_NUM_THREADS, else the processors this process may use, but no more than the work is
        worth: a search of a millisecond or two has one.
    memory : int or str, optional
        Bytes beyond the input that may be used, such as "2GB"; on CUDA, bytes of each device.
    self_join : bool
        The queries are the points themselves, as in :func:`tonari.knn_graph`; then m is n and k at most n - 1.
    recall, seed : float and int, optional
        For "nn-descent", as in :func:`tonari.knn_graph`.
    **overrides
        On the CPU isa, ladder, query_block, point_chunk, capacity, sample_stride, sample_rank, active_rows,
        point_splits, adaptive or resident. On CUDA route, ladder, group, width, query_batch, query_slab or point_slab.
        For "kdtree" height or leaf, sort, query_block, and on the CPU isa. For "nn-descent" list_size, start,
        clusters, probes, training, sweeps, hubs, reverse, breadth, width, rounds, sample, block, and on the CPU isa.

    Returns
    -------
    Plan
        Of the method and the device: :class:`tonari.exact.plan.ExactPlan`, :class:`tonari.exact.cuda.plan.CudaPlan`,
        :class:`tonari.kdtree.plan.TreePlan` or :class:`tonari.nn_descent.plan.DescentPlan`.

    Raises
    ------
    TypeError
        A number that is not whole, or a flag that is neither True nor False.
    ValueError
        For an impossible problem, override or budget, with the reason.
    ImportError
        For CUDA without torch or Triton.

    Examples
    --------
    >>> plan(1000, 10, 16, 5, threads=1).method
    'exact'
    """
    check_method(method)
    name = get_metric(metric).name
    n, m, d = (inputs.check_count(size, called) for called, size in (("n", n), ("m", m), ("d", d)))
    self_join = inputs.check_flag(self_join, "self_join")
    devices = inputs.devices_for(device)
    if method == "nn-descent":
        from tonari.nn_descent.plan import plan_descent

        if m != n:
            raise ValueError(f"method='nn-descent' builds a graph, which has as many queries as points: m={m}, n={n}")
        asked: dict[str, Any] = {"recall": recall, "seed": seed, "threads": threads, "memory": memory}
        return plan_descent(n, d, k, dtype=dtype, metric=name, devices=devices, **asked, **overrides)
    check_exact(method, recall=recall, seed=seed)
    if method == "kdtree":
        from tonari.kdtree.plan import plan_tree

        return plan_tree(
            n,
            m,
            d,
            k,
            dtype=dtype,
            metric=name,
            devices=devices,
            threads=threads,
            memory=memory,
            self_join=self_join,
            **overrides,
        )
    if devices:
        from tonari.exact.cuda.plan import plan_on_gpu

        check_no_threads(threads, devices)
        return plan_on_gpu(
            n,
            m,
            d,
            k,
            dtype=dtype,
            metric=name,
            devices=devices,
            memory=memory,
            self_join=self_join,
            host_points=True,
            host_queries=True,
            **overrides,
        )
    return plan_on_cpu(
        n, m, d, k, dtype=dtype, metric=name, threads=threads, memory=memory, self_join=self_join, **overrides
    )


def check_method(method: str) -> None:
    """Refuse a method that this version does not have."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"unknown method {method!r}; expected one of {', '.join(map(repr, METHODS))}")


def check_search_method(method: str) -> None:
    """Refuse a method that does not answer queries."""
    check_method(method)
    if method == "nn-descent":
        raise ValueError(
            "method='nn-descent' builds graphs: use tonari.knn_graph; a search is done by 'auto', 'exact' or 'kdtree'"
        )


def check_exact(method: str, **given: Any) -> None:
    """Refuse what only an approximate graph can be asked for."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} is for method='nn-descent', got method={method!r}: change that or leave {name} out"
            )
