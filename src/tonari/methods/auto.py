"""method="auto": a k-d tree or brute force, whichever is expected to take less time on these points and queries.

How many leaves a query visits depends on how the points lie, not on d alone. So it is measured, on a few queries, in
steps that each cost little beside what they may save:

    sizes      brute force would be done before a tree is built, or no tree serves the problem: brute force
    sample     trees of a part of the points and of a quarter of that: how visits grow, and a first expectation
    probe      the whole tree, which the search then has: the choice

Where a graph may miss neighbours, NN-Descent is chosen against that by what it is expected to cost and, if that is
less, by how hard a few hundred points say that it will be (``hardness.py``). Where it then misses its recall all the
same, the exact graph follows.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.costs.model import MeanVisits, brute_seconds, build_seconds, least_build_seconds, tree_seconds
from tonari.kdtree.plan import TreePlan, refusal
from tonari.nn_descent.intrinsic_dimension import NEIGHBOURS, ROWS, hardness

if TYPE_CHECKING:
    from tonari.methods.engines import Engine

logger = logging.getLogger("tonari")

USUAL_K = 10  # neighbours for which an Index chooses
MOST_DIMENSIONS = 30  # beyond, boxes keep nothing away
LEAST_POINTS = 2_048  # fewer are a few dozen leaves: brute force is done with all of them before a tree stands
_PROBED = 256  # queries, evenly spaced
_SAMPLE_PROBED = 128
_FIRST_PROBED = 32  # which are enough where the methods are far apart
_PROBED_SHARE = 8  # at most one query of so many
_FAR = 2.0
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
_PATIENCE = 2.0  # times what an exact graph is expected to take, NN-Descent may
CLEARLY = 1.5  # times as long an exact graph has to take for one that may miss neighbours


class Decision(NamedTuple):
    """A plan, and what else is known of it.

    Attributes
    ----------
    prepared : the points prepared by it, where that was needed to find out
    seconds : float
        Expected.
    instead : Decision, optional
        What follows where the recall that the plan asks for is out of its reach.
    """

    plan: Any
    prepared: Any = None
    seconds: float = math.nan
    instead: Decision | None = None

    @property
    def patience(self) -> float | None:
        """Seconds after which the other choice is taken."""
        return None if self.instead is None else _PATIENCE * self.instead.seconds


def choose(
    engine: Engine,
    points: Any,
    queries: Any,
    k: int,
    metric: str,
    *,
    threads: int | None,
    memory: int | str | None,
    self_join: bool = False,
    as_if: Any = None,
    progress: ProgressLike = None,
) -> Decision:
    """The plan of a search by the method that is expected to take less time.

    Parameters
    ----------
    engine : Engine
    points, queries : rows that the engine has checked
    k, metric, threads, memory, self_join, progress
        As for the search.
    as_if : rows, optional
        Queries for which the choice is made, where they are not those that the plan is for.

    Returns
    -------
    Decision
        With the tree, if that is the method.
    """
    given: dict[str, Any] = {"threads": threads, "memory": memory, "self_join": self_join}
    exact = engine.plan(points, queries, k, metric, method="exact", **given)
    probes = queries if as_if is None else as_if
    m = len(probes)
    brute = brute_seconds(exact, m)
    least = least_build_seconds(exact)
    by_force = Decision(exact, seconds=brute)
    if not _serves(exact) or brute < least:
        return by_force
    try:
        tree = engine.plan(points, queries, k, metric, method="kdtree", **given)
    except BudgetExceeded:  # there is no memory for a tree
        return by_force
    if tree.point_slab < tree.n:  # nor for a whole one, to be probed and kept
        return by_force
    build = build_seconds(tree)
    step = _step(tree)
    # What is risked to find out: two trees of parts of the points and the queries that try them, or the build itself.
    looking = math.inf if step is None else 4 * least + 1.25 * build / step
    if looking > build / 2 or build * _CHEAP < brute:
        step, looking = None, _DOUBT * exact.d * build
    if brute < build + looking:
        return by_force
    if step is not None:
        seen = _seen_in_sample(engine, points, _some(probes, _count(m, _SAMPLE_PROBED)), tree, step, threads)
        if build + _BELIEVED * tree_seconds(tree, m, seen) > brute:
            return _chosen(by_force, brute, build + tree_seconds(tree, m, seen), seen)
    prepared = engine.prepare(points, tree, progress)
    for count in sorted({_FIRST_PROBED, _count(m, _PROBED)}):
        seen = engine.visits(_some(probes, count), prepared, tree)
        search = tree_seconds(tree, m, seen)
        if not brute / _FAR < search < brute * _FAR:
            break
    return _chosen(by_force if search > brute else Decision(tree, prepared, search), brute, search, seen)


def choose_graph(
    engine: Engine,
    points: Any,
    k: int,
    metric: str,
    *,
    recall: float,
    seed: int | None,
    start: str,
    threads: int | None,
    memory: int | str | None,
    progress: ProgressLike = None,
) -> Decision:
    """The plan of a graph that may miss neighbours: NN-Descent where it is clearly sooner, else an exact method.

    Parameters
    ----------
    engine : Engine
    points : rows that the engine has checked
    k, metric, recall, seed, threads, memory, progress
        As for :func:`tonari.knn_graph`.
    start : str
        Of a :class:`tonari.nn_descent.plan.DescentPlan`.
    """
    exact = choose(engine, points, points, k, metric, threads=threads, memory=memory, self_join=True, progress=progress)
    asked: dict[str, Any] = {"recall": recall, "seed": seed, "start": start, "threads": threads, "memory": memory}
    try:
        descent = engine.plan_descent(points, k, metric, **asked)
    except (BudgetExceeded, Unsupported):  # there is no memory for its lists, or there are several devices
        return exact
    taken, seconds = exact, descent.seconds
    if exact.seconds >= CLEARLY * seconds:
        seconds *= _hardness(engine, points, metric, threads=threads, memory=memory)
    if exact.seconds >= CLEARLY * seconds:
        taken = Decision(descent, seconds=seconds, instead=exact._replace(prepared=None))
    logger.info(
        "auto takes method='%s': %.3g s expected by '%s', %.3g s by NN-Descent",
        *(taken.plan.method, exact.seconds, exact.plan.method, seconds),
    )
    return taken


def _hardness(engine: Engine, points: Any, metric: str, **given: Any) -> float:
    """How hard the points are for NN-Descent, by the exact neighbours of some of them."""
    some, k = _some(points, min(len(points), ROWS)), min(len(points), NEIGHBOURS + 1)
    plan = engine.plan(points, some, k, metric, method="exact", **given)
    distances = engine.search_once(some, points, plan, progress=False).distances[:, 1:]  # less themselves
    return hardness(distances if isinstance(distances, np.ndarray) else distances.cpu().numpy(), metric)


def _serves(plan: Plan) -> bool:
    """Whether a tree serves the problem of a plan, with any hope of being faster."""
    on_cuda = plan.device == "cuda"
    if plan.n < LEAST_POINTS or plan.d > MOST_DIMENSIONS:
        return False
    return refusal(plan.n, plan.d, plan.k, plan.metric, on_cuda=on_cuda) is None


def _step(plan: TreePlan) -> int | None:
    """One of how many points is in the sample; None where there are too few points for one."""
    step = min(SAMPLE, plan.n // max(_LEAST_SAMPLE, _SAMPLE_PER_NEIGHBOUR * plan.k))
    return step if step >= _LEAST_STEP else None


def _seen_in_sample(
    engine: Engine, points: Any, probes: Any, plan: TreePlan, step: int, threads: int | None
) -> MeanVisits:
    """What queries would look at, told from trees of two parts of the points.

    From a quarter of the sample to the whole of it visits grow by some power of the number of points, and from the
    sample to all points by a lower one: while a ball reaches across all leaves they grow as the points do, and once it
    is small against the whole they hardly do.
    """
    seen = []
    for every in (4 * step, step):
        part = _every(points, every)
        made = engine.plan(part, probes, plan.k, plan.metric, method="kdtree", threads=threads, memory=None)
        seen.append(engine.visits(probes, engine.prepare(part, made, False), made))
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
    logger.info(
        "auto takes method='%s': %.3g s expected by brute force, %.3g s by a k-d tree, %.1f leaves visited per row",
        *(choice.plan.method, brute, tree, seen.leaves),
    )
    return choice
