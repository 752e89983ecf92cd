"""Make the plan of an NN-Descent graph: a pure function of the problem and the machine.

The number of rounds depends on the data, so the run determines it by measuring the recall
(:mod:`tonari.nn_descent.driver`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.problem import Problem
from tonari.core.process.isa import check_isa, chosen_isa
from tonari.core.process.workers import default_threads
from tonari.costs.model import arrival_seconds, descent_seconds
from tonari.cuda.memory import available
from tonari.inputs.overrides import check_overrides
from tonari.metrics import get_metric
from tonari.metrics.names import is_own
from tonari.metrics.problem import refuse_metric
from tonari.nn_descent import tuning
from tonari.nn_descent.entries import MOST_POINTS
from tonari.nn_descent.memory import packed_bytes, working_bytes
from tonari.nn_descent.plan import OVERRIDES, OVERRIDES_ON_CUDA, DescentPlan, check_recall, check_seed
from tonari.nn_descent.updates import GNND, check_update, gnnd_list_size, gnnd_samples, refuse_unused

RECALL, SEED = 0.99, 0  # default recall and seed
MOST_NEAR_ON_CUDA = 256  # largest n_probe on CUDA
STARTS = ("clusters", "random", "graph")


def plan_descent(
    problem: Problem,
    *,
    recall: float | None = None,
    seed: int | None = None,
    free_bytes: int | None = None,
    **overrides: Any,
) -> DescentPlan:
    """Plan an NN-Descent graph; see :func:`tonari.plan`.

    Parameters
    ----------
    problem : Problem
        A self-join.
    recall : float, optional
        Between 0 and 1, both excluded. Default: 0.99.
    seed : int, optional
        Default: 0.
    free_bytes : int, optional
        On CUDA, available memory. Default: the memory that is free.
    **overrides
        Fields listed in :data:`OVERRIDES` and :data:`OVERRIDES_ON_CUDA`.

    Raises
    ------
    Unsupported
        NN-Descent cannot solve the problem.
    ValueError
        An override is invalid, or the budget is too small.

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
    update = check_update(overrides.get("update"), problem)
    check_overrides(overrides, OVERRIDES_ON_CUDA if on_cuda else OVERRIDES)
    target = check_recall(RECALL if recall is None else recall)
    drawn = check_seed(SEED if seed is None else seed)
    n, d, k = problem.n, problem.d, problem.k
    threads = 0 if on_cuda else problem.threads or default_threads(tuning.ROW_SECONDS * n)
    isa = "" if on_cuda else overrides.get("isa") or chosen_isa()
    if isa:
        check_isa(isa)
    start = overrides.get("start", "random" if update == GNND else "clusters")
    if start not in STARTS:
        raise ValueError(f"start={start!r}: expected one of {', '.join(map(repr, STARTS))}")
    refuse_unused(update, start, overrides)
    copied = n * d * inputs.dtype_of(problem.dtype).itemsize if on_cuda and problem.host_points else 0
    plan = DescentPlan(
        **problem.plan_fields(),
        method="nn-descent",
        isa=isa,
        recall=target,
        seed=drawn,
        update=update,
        start=start,
        widens=not on_cuda and start == "clusters" and "n_probe" not in overrides,
        threads=threads,
        packed_bytes=0,
        copied_bytes=copied,
        working_bytes=0,
        output_bytes=n * k * (4 + (8 if problem.dtype == "float64" else 4)),
        seconds=0.0,
        **_numbers(n, k, target, update, start, overrides, on_cuda=on_cuda),
    )
    seconds = arrival_seconds(problem) + _seconds(plan)
    plan = dataclasses.replace(
        plan, packed_bytes=packed_bytes(plan), working_bytes=working_bytes(plan), seconds=seconds
    )
    _check_budget(plan, problem.memory, free_bytes)
    return plan


def refusal(problem: Problem) -> str | None:
    """Return the reason why NN-Descent cannot build the graph of a problem; None if it can."""
    if not problem.self_join:
        return (
            f"method='nn-descent' builds a graph, which has as many queries as points: m={problem.m}, n={problem.n}; "
            "use method='exact' or 'kdtree'"
        )
    if problem.n > MOST_POINTS:
        return f"n={problem.n}: method='nn-descent' takes up to {MOST_POINTS} points; use tonari.build_graph"
    if len(problem.devices) > 1:
        return (
            f"method='nn-descent' runs on one device, got {', '.join(problem.devices)}: its rounds read lists of all "
            f"points; use device={problem.devices[0]!r}, or tonari.build_graph, which gives each device its own shards"
        )
    own = problem.devices and is_own(problem.metric)  # a user's metric, as a Triton function
    return None if own else refuse_metric(problem)


def _list_size(n: int, k: int, given: int | None) -> int:
    """Return the list size of the update "pull": the caller's number, if valid, or else the default."""
    size = min(n - 1, -(-(k + max(16, k // 2)) // 16) * 16) if given is None else int(given)
    if not k <= size <= n - 1:
        raise ValueError(f"list_size={size}: a list holds at least its k={k} neighbours, and at most n - 1 = {n - 1}")
    return size


def _numbers(
    n: int, k: int, recall: float, update: str, start: str, given: dict[str, Any], *, on_cuda: bool
) -> dict[str, int]:
    """Return all integer fields of a plan: overrides after a check, and defaults for the other fields."""
    gnnd, asked = update == GNND, given.get("list_size")
    size = gnnd_list_size(k, asked) if gnnd else _list_size(n, k, asked)
    usual_clusters = max(1, n // (tuning.CLUSTER_ON_CUDA if on_cuda else tuning.CLUSTER))
    usual_clusters = usual_clusters if on_cuda else min(usual_clusters, tuning.MOST_CLUSTERS)
    clusters = int(given.get("n_clusters", usual_clusters))
    # The lists of a given graph are nearly correct, so a round needs only a few entries of each to find other
    # neighbours.
    joined = on_cuda and start == "graph"
    if joined:
        usual_probes = 4
    elif on_cuda:  # every point has its own near clusters
        usual_probes = (16 if k <= 16 else 48) // (2 if recall <= 0.95 else 1)
    else:  # all points of a block share their near clusters, and are compared with about MEMBERS_MET members
        usual_probes = max(4, -(-tuning.MEMBERS_MET // (2 if recall <= 0.9 else 1) * clusters // n))
    few = on_cuda and k <= 10  # short lists need fewer candidates
    trained = on_cuda and not joined
    sample = (tuning.SAMPLE_OF_JOIN if joined else tuning.SAMPLE_ON_CUDA) if on_cuda else tuning.SAMPLE
    block = min(tuning.MOST_BLOCK_ON_CUDA, max(tuning.LEAST_BLOCK_ON_CUDA, n // tuning.BLOCKS_ON_CUDA // 1024 * 1024))
    usual = {
        "list_size": size,
        "n_clusters": clusters,
        "n_probe": min(clusters, usual_probes),
        "train_per_cluster": tuning.TRAINED_ON_CUDA if trained else tuning.TRAINED,
        "kmeans_iters": tuning.KMEANS_ITERS_ON_CUDA if trained else tuning.KMEANS_ITERS,
        "n_hubs": min(size, tuning.HUBS),
        "reverse": tuning.REVERSE,
        "neighbors_per_hub": min(size, tuning.NEIGHBORS_PER_HUB_FEW if few else tuning.NEIGHBORS_PER_HUB),
        "width": tuning.WIDTH_FEW if few else tuning.WIDTH,
        "samples": gnnd_samples(size, given.get("samples")) if gnnd else 0,
        "light_rounds": 0 if on_cuda else 1,
        "rounds": 24 if start == "random" else 12,
        "sample": min(n, max(sample, round(tuning.SAMPLED_MISSES / (1 - recall)))),
        "block": block if on_cuda else tuning.BLOCK,
    }
    if gnnd:  # large blocks, because one row takes little time
        usual |= {"n_hubs": 0, "reverse": 0, "neighbors_per_hub": 0, "width": 0, "block": tuning.MOST_BLOCK_ON_CUDA}
    chosen = usual | {name: int(value) for name, value in given.items() if name in usual}
    for name, most, why in (
        ("n_clusters", n, "there are no more points"),
        ("n_probe", clusters, "there are no more clusters"),
        ("n_hubs", size, "a list has no more neighbours"),
        ("neighbors_per_hub", size, "a list has no more neighbours"),
        ("sample", n, "there are no more rows"),
        *([("n_probe", MOST_NEAR_ON_CUDA, "CUDA keeps no more clusters per point")] if on_cuda else []),
    ):
        if chosen[name] > most:
            raise ValueError(f"{name}={chosen[name]}: at most {most}, since {why}")
    return chosen


def expects_contraction(plan: DescentPlan) -> bool:
    """Return whether the expected time of a plan is for points that contract."""
    return plan.widens and plan.d >= tuning.READ_SHORT and get_metric(plan.metric).squares


def slowdown_uncontracted(plan: DescentPlan) -> float:
    """Return the factor by which a run is expected to take longer than planned if the points do not contract."""
    return descent_seconds(plan) / _seconds(plan)


def _seconds(plan: DescentPlan) -> float:
    """Return the expected seconds of a run; a comparison reads fewer columns if contracted rows are compared first."""
    return descent_seconds(dataclasses.replace(plan, d=plan.d // 2) if expects_contraction(plan) else plan)


def _check_budget(plan: DescentPlan, budget: int | None, free_bytes: int | None) -> None:
    """Raise BudgetExceeded if a plan needs more than the budget or, on CUDA, than the free memory."""
    if plan.devices:
        free = available(plan.devices, free_bytes)
        budget = free if budget is None else min(budget, free)
    if budget is not None and plan.total_bytes > budget:
        raise BudgetExceeded(
            f"a memory budget of {budget} bytes cannot hold a graph by NN-Descent: allow at least {plan.total_bytes}, "
            "or use tonari.build_graph, which works shard by shard on files, method='exact', or a smaller list_size"
        )
