"""Making the plan of NN-Descent: a pure function of the problem and the machine.

What it cannot know is how many rounds the data need: the run measures that itself (:mod:`tonari.nn_descent.driver`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.isa import check_isa, chosen_isa
from tonari.core.problem import Problem
from tonari.core.workers import default_threads
from tonari.costs.model import arrival_seconds, descent_seconds
from tonari.cuda.memory import available
from tonari.inputs.overrides import check_overrides
from tonari.metrics.problem import refuse_own_metric
from tonari.nn_descent.entries import MOST_POINTS
from tonari.nn_descent.memory import packed_bytes, working_bytes
from tonari.nn_descent.plan import OVERRIDES, OVERRIDES_ON_CUDA, DescentPlan, check_recall, check_seed

RECALL, SEED = 0.99, 0  # defaults
MOST_NEAR_ON_CUDA = 256  # clusters of a point
STARTS = ("clusters", "random", "graph")

_CLUSTER, _CLUSTER_ON_CPU = 256, 128  # points of a cluster, on average
_MOST_CLUSTERS_ON_CPU = 8192  # every point is compared with the centres of all
_MET_ON_CPU = 8192  # members of clusters
_SAMPLE = 10.0  # rows without a neighbour in a sample of just the recall: fewer than three would tell nothing
_ROW_SECONDS = 4e-5  # of one thread for each row, in graphs of a few hundred: more threads than that is worth only cost
_LEAST_BLOCK, _MOST_BLOCK = 1 << 13, 1 << 16  # rows of a task on CUDA: fewer leave it waiting, more are no faster
_BLOCKS = 80  # in between so many tasks, which keeps what they hold small beside the lists


def plan_descent(
    problem: Problem,
    *,
    recall: float | None = None,
    seed: int | None = None,
    free_bytes: int | None = None,
    **overrides: Any,
) -> DescentPlan:
    """Plan a graph by NN-Descent; see :func:`tonari.plan`.

    Parameters
    ----------
    problem : Problem
        A self-join.
    recall : float, optional
        Between 0 and 1, both excluded. Default: 0.99.
    seed : int, optional
        Default: 0.
    free_bytes : int, optional
        On CUDA, memory that can be had. Default: what is free there.
    **overrides
        As :data:`OVERRIDES` and :data:`OVERRIDES_ON_CUDA` list them.

    Raises
    ------
    Unsupported
        For a problem that NN-Descent cannot solve.
    ValueError
        For an override or budget that cannot work, with the reason.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> n = 10**6
    >>> made = plan_descent(make_problem(n, n, 128, 10, dtype="float32", metric="euclidean", self_join=True))
    >>> made.list_size, made.start, made.n_clusters, made.recall
    (32, 'clusters', 7812, 0.99)
    """
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    on_cuda = bool(problem.devices)
    check_overrides(overrides, OVERRIDES_ON_CUDA if on_cuda else OVERRIDES)
    target = check_recall(RECALL if recall is None else recall)
    drawn = check_seed(SEED if seed is None else seed)
    n, d, k = problem.n, problem.d, problem.k
    threads = 0 if on_cuda else problem.threads or default_threads(_ROW_SECONDS * n)
    isa = "" if on_cuda else overrides.get("isa") or chosen_isa()
    if isa:
        check_isa(isa)
    start = overrides.get("start", "clusters")
    if start not in STARTS:
        raise ValueError(f"start={start!r}: expected one of {', '.join(map(repr, STARTS))}")
    copied = n * d * inputs.dtype_of(problem.dtype).itemsize if on_cuda and problem.host_points else 0
    made = DescentPlan(
        n=n,
        m=n,
        d=d,
        k=k,
        dtype=problem.dtype,
        metric=problem.metric,
        method="nn-descent",
        device=problem.device,
        devices=problem.devices,
        isa=isa,
        recall=target,
        seed=drawn,
        start=start,
        threads=threads,
        packed_bytes=0,
        copied_bytes=copied,
        working_bytes=0,
        output_bytes=n * k * (4 + (8 if problem.dtype == "float64" else 4)),
        seconds=0.0,
        **_numbers(n, k, target, start, overrides, on_cuda=on_cuda),
    )
    seconds = arrival_seconds(problem) + descent_seconds(made)
    made = dataclasses.replace(
        made, packed_bytes=packed_bytes(made), working_bytes=working_bytes(made), seconds=seconds
    )
    _check_budget(made, problem.memory, free_bytes)
    return made


def refusal(problem: Problem) -> str | None:
    """Why NN-Descent cannot build the graph of a problem; None if it can."""
    if not problem.self_join:
        return (
            f"method='nn-descent' builds a graph, which has as many queries as points: m={problem.m}, n={problem.n}; "
            "use method='exact' or 'kdtree'"
        )
    if problem.n > MOST_POINTS:
        return f"n={problem.n}: method='nn-descent' takes up to {MOST_POINTS} points; use method='exact'"
    if len(problem.devices) > 1:
        return (
            f"method='nn-descent' runs on one device, got {', '.join(problem.devices)}: its rounds read lists of all "
            f"points; use device={problem.devices[0]!r}"
        )
    return None if problem.devices else refuse_own_metric(problem)


def _numbers(n: int, k: int, recall: float, start: str, given: dict[str, Any], *, on_cuda: bool) -> dict[str, int]:
    """All whole numbers of a plan: what is asked for, checked, and what is usual for the rest."""
    size = int(given.get("list_size", min(n - 1, -(-(k + max(16, k // 2)) // 16) * 16)))
    if not k <= size <= n - 1:
        raise ValueError(f"list_size={size}: a list holds at least its k={k} neighbours, and at most n - 1 = {n - 1}")
    usual_clusters = max(1, n // _CLUSTER) if on_cuda else min(max(1, n // _CLUSTER_ON_CPU), _MOST_CLUSTERS_ON_CPU)
    clusters = int(given.get("n_clusters", usual_clusters))
    joined = on_cuda and start == "graph"  # its lists are good: few right seeds are enough for a round to find the rest
    if joined:
        usual_probes = 4
    elif on_cuda:  # each point has clusters of its own
        usual_probes = (16 if k <= 16 else 48) // (2 if recall <= 0.95 else 1)
    else:  # those of a block of points, who meet about so many
        usual_probes = max(4, -(-_MET_ON_CPU // (2 if recall <= 0.9 else 1) * clusters // n))
    few = on_cuda and k <= 10  # which fewer answers lead to
    usual = {
        "list_size": size,
        "n_clusters": clusters,
        "n_probe": min(clusters, usual_probes),
        "train_per_cluster": 48 if on_cuda and not joined else 16,
        "kmeans_iters": 4 if on_cuda and not joined else 1,
        "n_hubs": min(size, 16),
        "reverse": 16,
        # With 16 + 16 that are asked these make just less than 512 or 1024 answers, which a card sorts at once.
        "neighbors_per_hub": min(size, 15 if few else 31),
        "width": 192 if few else 384,
        "light_rounds": 0 if on_cuda else 1,
        "rounds": 24 if start == "random" else 12,
        "sample": min(n, max((2000 if joined else 4000) if on_cuda else 1000, round(_SAMPLE / (1 - recall)))),
        "block": min(_MOST_BLOCK, max(_LEAST_BLOCK, n // _BLOCKS // 1024 * 1024)) if on_cuda else 256,
    }
    chosen = usual | {name: int(value) for name, value in given.items() if name in usual}
    for name, most, why in (
        ("n_clusters", n, "there are no more points"),
        ("n_probe", clusters, "there are no more clusters"),
        ("n_hubs", size, "a list has no more neighbours"),
        ("neighbors_per_hub", size, "a list has no more neighbours"),
        ("sample", n, "there are no more rows"),
        *([("n_probe", MOST_NEAR_ON_CUDA, "a row is told no more clusters on CUDA")] if on_cuda else []),
    ):
        if chosen[name] > most:
            raise ValueError(f"{name}={chosen[name]}: at most {most}, since {why}")
    return chosen


def _check_budget(plan: DescentPlan, budget: int | None, free_bytes: int | None) -> None:
    """Refuse a plan that does not keep a budget, or on CUDA what is free."""
    if plan.devices:
        free = available(plan.devices, free_bytes)
        budget = free if budget is None else min(budget, free)
    if budget is not None and plan.total_bytes > budget:
        raise BudgetExceeded(
            f"a memory budget of {budget} bytes cannot hold a graph by NN-Descent: allow at least {plan.total_bytes}, "
            "or use method='exact' or a smaller list_size"
        )
