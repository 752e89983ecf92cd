"""method="auto": a k-d tree or brute force, whichever is expected to take less time on these points and queries.

How many leaves a query visits depends on the data, not on d alone. So it is measured, on a few queries, in steps that
each cost little beside what they may save:

    sizes      brute force would be done before a tree is built, or no tree can solve the problem: brute force
    sample     trees of a part of the points and of a quarter of that: how visits grow, and a first expectation
    probe      the whole tree, which the search then has: the choice

Where a graph may miss neighbours, NN-Descent is compared with that choice by what it is expected to cost and, if that
is less, by how hard a few hundred points say that it will be (``nn_descent/intrinsic_dimension.py``). Where it then
misses its recall all the same, the exact graph follows.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any, cast

import numpy as np

from tonari.core.errors import BudgetExceeded
from tonari.core.method import TreeMethod
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.costs.formulas import MeanVisits
from tonari.costs.model import arrival_seconds, build_seconds, least_build_seconds, tree_seconds
from tonari.methods.decision import Decision
from tonari.methods.registry import method_for, search_method
from tonari.nn_descent.intrinsic_dimension import NEIGHBOURS, ROWS, hardness

logger = logging.getLogger("tonari")

USUAL_K = 10  # neighbours for which an Index chooses
MOST_DIMENSIONS = 30  # beyond, boxes keep nothing away
LEAST_POINTS = 2_048  # fewer are a few dozen leaves: brute force is done with all of them before a tree is built
_PROBED = 256  # queries, evenly spaced
_SAMPLE_PROBED = 128
_FIRST_PROBED = 32  # which are enough where the methods are far apart
_PROBED_SHARE = 8  # at most one query of so many
_FAR = 2.0  # times the other's seconds: methods are far apart
_CHEAP = 20.0  # a build that brute force takes so many times longer than is tried without a sample
SAMPLE = 16  # one point of so many is in the sample
_LEAST_STEP = 8  # a tree of more costs as much as the whole one saves
_LEAST_SAMPLE = 2_048  # points, and so many per neighbour:
_SAMPLE_PER_NEIGHBOUR = 16
# Where there is no sample to tell from, brute force has to take so much longer than the build to be doubted, for each
# dimension.
_DOUBT = 0.1
_SLOWING = 0.25  # what a power of growth loses of itself from the sample to all points, for each unit
_BELIEVED = 0.75  # of the time that a sample foretells
CLEARLY = 1.5  # least expected speed-up before a graph that may miss neighbours is chosen


def choose(
    problem: Problem, points: Any, queries: Any, *, as_if: Any = None, progress: ProgressLike = None
) -> Decision:
    """The exact method that is expected to take less time.

    Parameters
    ----------
    problem : Problem
    points, queries : checked rows
    as_if : rows, optional
        Queries for which the choice is made, where they are not those that the plan is for.
    progress : None, bool or callable(done, total)

    Returns
    -------
    Decision
        With the tree, if that is the method.
    """
    settled = by_sizes(problem, len(queries if as_if is None else as_if))
    if isinstance(settled, Decision):
        return settled
    return _by_data(settled, points, queries if as_if is None else as_if, progress)


def by_sizes(problem: Problem, m: int) -> Decision | Open:
    """What sizes alone decide for m queries, by the plan for a problem; else what has to be found out."""
    exact = search_method("exact", problem.device)
    plan = exact.plan(problem)
    # What both methods take before they begin is left out of the comparison.
    usual = plan if m == problem.m else exact.plan(dataclasses.replace(problem, m=m, memory=None))
    brute = usual.seconds - arrival_seconds(problem)
    by_force = Decision(exact, plan, seconds=brute)
    tree_method = cast(TreeMethod, method_for("kdtree", problem.device))
    if problem.n < LEAST_POINTS or brute < (least := least_build_seconds(plan)):
        return by_force._replace(reason="brute force is done before a tree is built")
    if problem.d > MOST_DIMENSIONS:
        return by_force._replace(reason=f"beyond {MOST_DIMENSIONS} dimensions the boxes of a tree exclude nothing")
    why_not = tree_method.refuses(problem)
    if why_not is not None:
        return by_force._replace(reason=why_not)
    try:
        tree = tree_method.plan(problem)
    except BudgetExceeded:
        return by_force._replace(reason="there is no memory for a tree")
    if tree.point_slab < tree.n:
        return by_force._replace(reason="there is no memory for a tree of all points")
    build = build_seconds(tree)
    step = _step(tree)
    # What is risked to find out: two trees of parts of the points and the queries that try them, or the build itself.
    looking = math.inf if step is None else 4 * least + 1.25 * build / step
    if looking > build / 2 or build * _CHEAP < brute:
        step, looking = None, _DOUBT * problem.d * build
    if brute < build + looking:
        return by_force._replace(reason="brute force is done before it is known whether a tree is sooner")
    return Open(problem, by_force, tree_method, tree, m, step)


@dataclasses.dataclass(frozen=True)
class Open:
    """A choice that depends on the data.

    Attributes
    ----------
    problem : Problem
    by_force : Decision
    method : TreeMethod
    tree : TreePlan
    m : int
        Queries for which the choice is made.
    step : int or None
        One of how many points is in the sample; None where the whole tree is tried at once.
    """

    problem: Problem
    by_force: Decision
    method: TreeMethod
    tree: Any
    m: int
    step: int | None


def _by_data(choice: Open, points: Any, probes: Any, progress: ProgressLike) -> Decision:
    """The choice, by what some queries visit in trees."""
    tree, m, brute = choice.tree, choice.m, choice.by_force.seconds
    build = build_seconds(tree)
    if choice.step is not None:
        seen = _seen_in_sample(choice, points, _some(probes, _count(m, _SAMPLE_PROBED)))
        if build + _BELIEVED * tree_seconds(tree, m, seen) > brute:
            return _chosen(choice.by_force, brute, build + tree_seconds(tree, m, seen), seen)
    prepared = choice.method.prepare(points, tree, progress)
    for count in sorted({_FIRST_PROBED, _count(m, _PROBED)}):
        seen = MeanVisits(*choice.method.visits(_some(probes, count), prepared, tree))
        search = tree_seconds(tree, m, seen)
        if not brute / _FAR < search < brute * _FAR:
            break
    by_tree = Decision(choice.method, tree, prepared, search)
    return _chosen(choice.by_force if search > brute else by_tree, brute, search, seen)


def choose_graph(
    problem: Problem,
    points: Any,
    *,
    recall: float,
    seed: int | None,
    start: str,
    progress: ProgressLike = None,
) -> Decision:
    """The plan of a graph that may miss neighbours: NN-Descent where it is clearly sooner, else an exact method.

    Parameters
    ----------
    problem : Problem
        A self-join.
    points : checked rows
    recall, seed
        As for :func:`tonari.knn_graph`.
    start : str
        Of a :class:`tonari.nn_descent.plan.DescentPlan`.
    progress : None, bool or callable(done, total)
    """
    exact = choose(problem, points, points, progress=progress)
    method = method_for("nn-descent", problem.device)
    why_not = method.refuses(problem)
    if why_not is not None:
        return exact._replace(reason=why_not)
    try:
        descent = method.plan(problem, recall=recall, seed=seed, start=start)
    except BudgetExceeded:
        return exact._replace(reason="there is no memory for the lists of NN-Descent")
    seconds = descent.seconds - arrival_seconds(problem)
    if is_clearly_faster(problem, descent, exact):
        seconds *= _hardness(problem, points)
    reason = f"{exact.seconds:.3g} s expected by {exact.plan.method!r}, {seconds:.3g} s by NN-Descent"
    taken = exact._replace(reason=reason)
    if exact.seconds >= CLEARLY * seconds:
        taken = Decision(method, descent, None, seconds, reason, exact._replace(prepared=None))
    logger.info("auto takes method='%s': %s", taken.plan.method, reason)
    return taken


def is_clearly_faster(problem: Problem, descent: Plan, exact: Decision) -> bool:
    """Whether NN-Descent is expected to take so much less time than an exact method that it may miss neighbours."""
    return exact.seconds >= CLEARLY * (descent.seconds - arrival_seconds(problem))


def _hardness(problem: Problem, points: Any) -> float:
    """How hard the points are for NN-Descent, by the exact neighbours of some of them."""
    some, k = _some(points, min(len(points), ROWS)), min(len(points), NEIGHBOURS + 1)
    method = search_method("exact", problem.device)
    plan = method.plan(dataclasses.replace(problem, m=len(some), k=k, self_join=False))
    distances = method.search_once(some, points, plan, progress=False).distances[:, 1:]  # less themselves
    return hardness(distances if isinstance(distances, np.ndarray) else distances.cpu().numpy(), problem.metric)


def _step(plan: Any) -> int | None:
    """One of how many points is in the sample; None where there are too few points for one."""
    step = min(SAMPLE, plan.n // max(_LEAST_SAMPLE, _SAMPLE_PER_NEIGHBOUR * plan.k))
    return step if step >= _LEAST_STEP else None


def _seen_in_sample(choice: Open, points: Any, probes: Any) -> MeanVisits:
    """What queries would look at, told from trees of two parts of the points.

    From a quarter of the sample to the whole of it visits grow by some power of the number of points, and from the
    sample to all points by a lower one: while a ball reaches across all leaves they grow as the points do, and once it
    is small against the whole they hardly do.
    """
    seen, method, step = [], choice.method, cast(int, choice.step)
    for every in (4 * step, step):
        part = _every(points, every)
        made = method.plan(
            dataclasses.replace(choice.problem, n=len(part), m=len(probes), self_join=False, memory=None)
        )
        seen.append(MeanVisits(*method.visits(probes, method.prepare(part, made, False), made)))
    return grown(*seen, times=4.0, to=float(step))


def grown(coarse: MeanVisits, fine: MeanVisits, *, times: float, to: float) -> MeanVisits:
    """Visits for `to` times the points of `fine`, which has `times` those of `coarse`, as their growth slows down.

    >>> grown(MeanVisits(4, 2, 100), MeanVisits(16, 3, 400), times=4, to=16)
    MeanVisits(leaves=128.0, nodes=24.0, points=3200.0)
    """
    power = min(1.0, max(0.0, math.log(fine.points / coarse.points) / math.log(times)))
    power -= _SLOWING * power**2
    return MeanVisits(*(part * to**power for part in fine))


def _count(m: int, most: int) -> int:
    """Queries to probe."""
    return min(most, max(_FIRST_PROBED, m // _PROBED_SHARE))


def _some(rows: Any, count: int) -> Any:
    """About so many rows, evenly spaced."""
    return _every(rows, -(-len(rows) // count))


def _every(rows: Any, step: int) -> Any:
    part = rows[::step]
    return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part.contiguous()


def _chosen(choice: Decision, brute: float, tree: float, seen: MeanVisits) -> Decision:
    reason = (
        f"{brute:.3g} s expected by brute force, {tree:.3g} s by a k-d tree, {seen.leaves:.1f} leaves visited per row"
    )
    logger.info("auto takes method='%s': %s", choice.plan.method, reason)
    return choice._replace(reason=reason)
