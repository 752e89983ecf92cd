"""`tonari.plan`: the plan of a search by a named method; `tonari.warm`: compilation of its kernels in advance."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.core.plan import Plan
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.methods.places.place import may_take_fewer
from tonari.methods.registry import by_force, check_exact, check_method, is_exact, is_search, method_for, search_method
from tonari.metrics import TritonFunction
from tonari.metrics.problem import make_problem


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
    """Plan a search for the k nearest of n points to each of m queries in d dimensions.

    The plan depends only on the arguments and the machine: its instruction sets, TONARI_ISA, TONARI_NUM_THREADS, and
    the free memory of its CUDA devices.

    Parameters
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype : dtype or its name
        dtype of the points, such as "bfloat16".
    metric : str, or a Triton function as for :func:`tonari.knn_graph`
    method : "auto", "exact", "kdtree", "bits", "missing" or "nn-descent"
        "auto" plans brute force: "exact", "missing" for "nan_euclidean", or "bits" for rows of bits; d is then the
        number of bytes. A k-d tree may be faster, but this depends on the data, which only a search with method="auto"
        examines. "nn-descent" plans an approximate graph, and requires m = n.
    device : str or list of str
        "auto" and "cpu": the CPU. "cuda", "cuda:1", ["cuda:0", "cuda:1"] and "cuda:all": these devices; the plan
        assumes that points and queries are copied from host memory.
    threads : int, optional
        CPU threads. Default: TONARI_NUM_THREADS if it is set, else the processors that this process may use, but fewer
        for short work: a search of one or two milliseconds uses one thread.
    memory : int or str, optional
        Budget beyond the input, in bytes or as a string such as "2GB"; on CUDA, per device.
    self_join : bool
        The queries are the points themselves, as in :func:`tonari.knn_graph`; then m is n and k at most n - 1.
    recall, seed : float and int, optional
        For "nn-descent", as in :func:`tonari.knn_graph`.
    **overrides
        Fields of the plan to set. They depend on the method and the device; ``tonari plan --help`` lists and explains
        them. The error for an unknown name lists them too.

    Returns
    -------
    Plan
        A :class:`tonari.exact.plan.ExactPlan`, :class:`tonari.exact.cuda.plan.CudaPlan`,
        :class:`tonari.kdtree.plan.TreePlan`, :class:`tonari.bits.plan.BitsPlan`,
        :class:`tonari.bits.cuda.plan.BitsCudaPlan`, :class:`tonari.missing.plan.MissingPlan` or
        :class:`tonari.nn_descent.plan.DescentPlan`, by method and device.

    Raises
    ------
    TypeError
        A number is not whole, or a flag is neither True nor False.
    ValueError
        The problem, an override or the budget is impossible; the message says why.
    ImportError
        torch or Triton is missing, for CUDA.

    Examples
    --------
    >>> plan(1000, 10, 16, 5, threads=1).method
    'exact'
    """
    check_method(method)
    n, m, d = (inputs.check_count(size, called) for called, size in (("n", n), ("m", m), ("d", d)))
    problem = make_problem(
        n,
        m,
        d,
        k,
        dtype=dtype,
        metric=metric,
        self_join=inputs.check_flag(self_join, "self_join") or (m == n and not is_search(method)),
        devices=inputs.devices_for(device),
        threads=threads,
        memory=memory,
    )
    problem = dataclasses.replace(problem, may_take_fewer=may_take_fewer(device))
    if is_exact(method):
        check_exact(method, recall=recall, seed=seed)
    else:
        overrides |= {"recall": recall, "seed": seed}
    made: Plan = method_for(by_force(problem.metric) if method == "auto" else method, problem.device).plan(
        problem, **overrides
    )
    return made


@in_default_floats
def warm(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike = "float32",
    metric: str = "euclidean",
    device: Any = "cuda",
    self_join: bool = False,
    progress: ProgressLike = None,
) -> int:
    """Compile the kernels of a search on CUDA in parallel, so that the first search does not wait for them.

    Triton stores compiled kernels on disk (``TRITON_CACHE_DIR``, default ``~/.triton/cache``) for all later processes,
    until Triton or tonari changes. Kernels depend on the dtype, d, k, the metric and the GPU model, and only roughly on
    n and m.

    Parameters
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype : dtype or its name
        dtype of points and queries.
    metric : str
    device : str or list of str
        As for :func:`tonari.plan`; nothing is compiled for "cpu".
    self_join : bool
        The queries are the points themselves, as in :func:`tonari.knn_graph`; then m is n and k at most n - 1.
    progress : None, bool or callable(done, total)
        As for :func:`tonari.search`; a callable is not called.

    Returns
    -------
    int
        The number of kernels that were compiled; 0 if all were on disk. A kernel that fails to compile is logged as a
        warning.

    Raises
    ------
    TypeError, ValueError, ImportError
        As for :func:`tonari.plan`.
    Unsupported
        The search does not fit into the device's memory, so that its kernels are compiled during the search.
        Unsupported is a subclass of ValueError.

    Notes
    -----
    The function compiles the kernels of brute force (``method="exact"``), with and without a mask. Other kernels are
    compiled at their first use: kernels that search queries again if the first pass could not certify their neighbours,
    and kernels of radius searches, lists, k-d trees, NN-Descent and rows of bits.

    Examples
    --------
    >>> import tonari
    >>> tonari.warm(10**6, 10**4, 128, 10, device="cpu")
    0
    """
    inputs.check_progress(progress)
    planned = plan(n, m, d, k, dtype=dtype, metric=metric, method="exact", device=device, self_join=self_join)
    return search_method("exact", planned.device).warm(planned, self_join=self_join, progress=progress)
