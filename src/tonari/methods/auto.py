"""method="auto": the choice between a k-d tree and brute force, whichever is expected to be faster on the given data.

The number of leaves that a query visits depends on the data, not only on d. It is therefore measured with a few
queries, in steps that are short compared with the time they may save:

    sizes      choose brute force if it would finish before a tree is built, or if a tree cannot solve the problem; for
               few points, choose the method that is expected to be faster for uniform points
    sample     build trees of a sample of the points and of a quarter of it, and extrapolate the number of leaves that
               queries visit to a tree of all points. This step is skipped if a tree of uniform points would take hardly
               longer than brute force. If a tree is expected to be slower, and the trees of the sample would take a
               large share of brute force's time, brute force is chosen without a sample
    probe      build the whole tree, which the search can use later, and decide by the visits of a few queries

On CUDA, probing a few queries takes longer than many searches. If a tree is expected to be faster for uniform points,
it is used without a probe, since most data are easier than uniform points. For the case that the data are harder, the
number of visits of a query is limited: when its visits have taken several times as long as brute force takes per query,
brute force answers the query (`most_visits` of :class:`tonari.kdtree.plan.TreePlan`).

``auto_graph.py`` chooses the method for graphs that may miss neighbours.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any, cast

import numpy as np

from tonari.core.errors import BudgetExceeded
from tonari.core.method import TreeMethod
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.costs.formulas import MeanVisits
from tonari.costs.model import (
    all_visits,
    arrival_seconds,
    build_seconds,
    expected_visits,
    least_build_seconds,
    tree_seconds,
)
from tonari.methods import tuning
from tonari.methods.decision import Decision, by_plan
from tonari.methods.registry import by_force as brute_force
from tonari.methods.registry import method_for, search_method
from tonari.metrics import get_metric

logger = logging.getLogger("tonari")


def choose(
    problem: Problem,
    points: Any,
    queries: Any,
    *,
    as_if: Any = None,
    once: bool = True,
    progress: ProgressLike = None,
) -> Decision:
    """Choose the exact method with the least expected time.

    Parameters
    ----------
    problem : Problem
    points, queries : checked rows
    as_if : rows, optional
        Queries that represent later searches. The choice is then for many searches, which justifies the time to examine
        the data.
    once : bool
        Whether a tree built for the decision will be used for a single search with the problem's k.
    progress : None, bool or callable(done, total)

    Returns
    -------
    Decision
        The decision, with the tree if it was built for the decision and is the chosen method.
    """
    judged = by_sizes(problem, len(queries if as_if is None else as_if))
    if isinstance(judged, Decision):
        return judged
    unseen = without_looking(judged) if as_if is None else None
    return unseen or _by_data(judged, points, queries if as_if is None else as_if, once, progress)


def by_sizes(problem: Problem, m: int) -> Decision | Open:
    """Decide for m queries by the sizes alone; if the decision depends on the data, return an :class:`Open` choice."""
    exact = search_method(brute_force(problem.metric), problem.device)
    plan = exact.plan(problem)
    if get_metric(problem.metric).bits:
        return by_plan(exact, plan, reason="rows of bits are all compared")
    if get_metric(problem.metric).missing:
        return by_plan(exact, plan, reason="rows with missing values are all compared")
    # The comparison leaves out the time to copy the input, which is the same for both methods.
    usual = plan if m == problem.m else exact.plan(dataclasses.replace(problem, m=m, memory=None))
    brute = usual.seconds - arrival_seconds(problem)
    by_force = Decision(exact, plan, seconds=brute)
    tree_method = cast(TreeMethod, method_for("kdtree", problem.device))
    if problem.n < tuning.LEAST_POINTS or brute < (least := least_build_seconds(plan)):
        return by_force._replace(reason="brute force ends before a tree would be built")
    if problem.d > tuning.MOST_DIMENSIONS:
        return by_force._replace(
            reason=f"beyond {tuning.MOST_DIMENSIONS} dimensions the boxes of a tree exclude nothing"
        )
    if problem.n < tuning.FEW_POINTS and problem.d > tuning.MOST_DIMENSIONS_OF_FEW:
        reason = f"beyond {tuning.MOST_DIMENSIONS_OF_FEW} dimensions the boxes of so few points exclude little"
        return by_force._replace(reason=reason)
    why_not = tree_method.refuses(problem)
    if why_not is not None:
        return by_force._replace(reason=why_not)
    try:
        tree = tree_method.plan(problem)
    except BudgetExceeded:
        return by_force._replace(reason="there is no memory for a tree")
    if tree.point_slab < tree.n:
        return by_force._replace(reason="there is no memory for a tree of all points")
    if problem.n < tuning.FEW_POINTS:  # decide by sizes, because examining the data would take as long as the search
        usual = tree if m == problem.m else tree_method.plan(dataclasses.replace(problem, m=m, memory=None))
        seconds = usual.seconds - arrival_seconds(problem)
        reason = f"{brute:.3g} s expected by brute force, {seconds:.3g} s by a k-d tree of so few points"
        chosen = by_force if brute < seconds else Decision(tree_method, tree, None, seconds)
        return chosen._replace(reason=reason)
    build = build_seconds(tree)
    step = _step(tree)
    # Seconds to examine the data: build two trees of samples and search them, or else build the whole tree.
    probing = math.inf if step is None else _of_samples(least, build, step)
    if probing > build / 2 or build * tuning.CHEAP_BUILD_FACTOR < brute:
        step, probing = None, tuning.EXCESS_PER_DIMENSION * problem.d * build
    choice = Open(problem, by_force, tree_method, tree, m, step)
    uniform = choice.by_tree_of_uniform
    if problem.devices and uniform <= brute:
        return choice
    margin = tuning.MARGIN if plan.precisions[0] == "int8" else 1.0
    if not problem.devices and uniform <= margin * brute:
        return dataclasses.replace(choice, step=None)
    likely = uniform <= tuning.UNLIKELY_FACTOR * brute
    if problem.devices:
        probing = probing if likely else max(probing, tuning.UNLIKELY_EXCESS * build, tuning.UNLIKELY_LEAST - build)
    elif choice.looking > (tuning.WORTH_A_LOOK if likely else tuning.WORTH_A_LOOK_IF_UNLIKELY) * brute:
        return by_force._replace(reason="measuring whether a tree is faster would take too long")
    if brute < build + probing:
        return by_force._replace(reason="brute force ends before a measurement could show whether a tree is faster")
    return choice


@dataclasses.dataclass(frozen=True)
class Open:
    """A choice between a k-d tree and brute force that sizes alone do not decide.

    Attributes
    ----------
    problem : Problem
    by_force : Decision
        The decision for brute force.
    method : TreeMethod
    tree : TreePlan
        The plan of a tree for the problem.
    m : int
        Number of queries for which the choice is made.
    step : int or None
        The sample contains every step-th point; None builds the whole tree at once.
    """

    problem: Problem
    by_force: Decision
    method: TreeMethod
    tree: Any
    m: int
    step: int | None

    @property
    def by_tree_of_uniform(self) -> float:
        """The expected seconds to build and search a tree, estimated for uniform points."""
        return build_seconds(self.tree) + tree_seconds(self.tree, self.m, self.seen_in_uniform)

    @property
    def seen_in_uniform(self) -> MeanVisits:
        tree = self.tree
        return expected_visits(tree.n, tree.d, tree.k, tree.height)

    @property
    def looking(self) -> float:
        """The expected seconds to examine the data on the CPU, estimated for uniform points."""
        tree, build = self.tree, build_seconds(self.tree)
        if self.step is None:
            return build + tree_seconds(tree, tuning.FIRST_PROBED, self.seen_in_uniform)
        height = max(0, tree.height - int(math.log2(self.step)))
        seen = expected_visits(tree.n // self.step, tree.d, tree.k, height)
        probing = tree_seconds(tree, _count(self, tuning.SAMPLE_PROBED), seen)
        return _of_samples(least_build_seconds(tree), build, self.step) + 1.25 * probing

    @property
    def can_be_bounded(self) -> bool:
        """Whether brute force can take over queries that visit too many nodes: on CUDA, without a memory budget."""
        return bool(self.problem.devices) and self.problem.memory is None

    def bounded(self, times: float = 1.0) -> Any:
        """Return the plan of the tree, on CUDA with a limit on the nodes that a query visits.

        Brute force answers a query that reaches the limit. A caller that only probes a few queries passes `times` above
        1, which multiplies the limit. The limit is left out if no query can reach it.
        """
        if not self.can_be_bounded:
            return self.tree
        seen, brute = self.seen_in_uniform, times * self.by_force.seconds
        # seconds in which every query visits one node or leaf
        visit = tree_seconds(self.tree, self.m, seen) / (seen.leaves + seen.nodes)
        most = int(min(tuning.LOOK_PATIENCE * brute / visit, brute / tuning.VISIT_SECONDS))
        if most >= 2 << self.tree.height:  # no query can reach the limit, because a tree of this height has fewer nodes
            return self.tree
        return dataclasses.replace(self.tree, most_visits=max(tuning.LEAST_VISITS, most))


def without_looking(choice: Open) -> Decision | None:
    """Choose a tree for one search on CUDA without examining the data.

    Return None if brute force is expected to be faster for uniform points.
    """
    brute, seconds = choice.by_force.seconds, choice.by_tree_of_uniform
    if not choice.can_be_bounded or brute < seconds:
        return None
    plan = choice.bounded()
    reason = f"{brute:.3g} s expected by brute force, {seconds:.3g} s by a k-d tree of uniform points"
    logger.info("auto takes method='%s': %s", plan.method, reason)
    return Decision(choice.method, plan, None, seconds, reason)


def _by_data(choice: Open, points: Any, probes: Any, once: bool, progress: ProgressLike) -> Decision:
    """Decide by the nodes and leaves that a few queries visit, first in trees of samples, then in the whole tree."""
    tree, m, brute = choice.tree, choice.m, choice.by_force.seconds
    build = build_seconds(tree)
    if choice.step is not None:
        seen = _seen_in_sample(choice, points, some_rows(probes, _count(choice, tuning.SAMPLE_PROBED)))
        if build + tuning.LEAST_SHARE * tree_seconds(tree, m, seen) > brute:
            return _chosen(choice.by_force, brute, build + tree_seconds(tree, m, seen), seen)
    prepare = choice.method.prepare_once if once else choice.method.prepare
    prepared = prepare(points, tree, progress)
    usual = tree_seconds(tree, m, choice.seen_in_uniform)
    most = min(tuning.LOOK_PATIENCE * usual, tree_seconds(tree, m, all_visits(tree.n, tree.height)))
    if not choice.problem.devices and most <= brute:
        reason = f"{brute:.3g} s expected by brute force, at most {most:.3g} s by a k-d tree that is built"
        logger.info("auto takes method='%s': %s", tree.method, reason)
        return Decision(choice.method, tree, prepared, usual, reason, by_data=True)
    looking = choice.bounded(tuning.FAR_FACTOR)
    for count in sorted({tuning.FIRST_PROBED, _count(choice, tuning.PROBED)}):
        seen = MeanVisits(*choice.method.visits(some_rows(probes, count), prepared, looking))
        search = tree_seconds(tree, m, seen)
        if not brute / tuning.FAR_FACTOR < search < brute * tuning.FAR_FACTOR:
            break
    by_tree = Decision(choice.method, tree, prepared, search)
    return _chosen(choice.by_force if search > brute else by_tree, brute, search, seen)


def _of_samples(least: float, build: float, step: int) -> float:
    """Return the expected seconds to build the trees of both samples; building the whole tree takes `build` seconds."""
    return 4 * least + 1.25 * build / step


def _step(plan: Any) -> int | None:
    """Return the step of the sample, which contains every step-th point.

    Return None if the points are too few for a sample.
    """
    step = min(tuning.SAMPLE, plan.n // max(tuning.LEAST_SAMPLE, tuning.SAMPLE_PER_NEIGHBOUR * plan.k))
    return step if step >= tuning.LEAST_STEP else None


def _seen_in_sample(choice: Open, points: Any, probes: Any) -> MeanVisits:
    """Estimate the visits of queries in a tree of all points from trees of two samples of the points.

    From the smaller sample to the larger one, visits grow as some power of the number of points. The extrapolation to
    all points uses a lower power: while the ball around a query reaches all leaves, visits grow in proportion to n;
    once the ball is small compared with the data, they hardly grow.
    """
    seen, method, step = [], choice.method, cast(int, choice.step)
    for every in (4 * step, step):
        part = rows_apart(points, every)
        made = method.plan(
            dataclasses.replace(choice.problem, n=len(part), m=len(probes), self_join=False, memory=None)
        )
        seen.append(MeanVisits(*method.visits(probes, method.prepare(part, made, False), made)))
    return grown(*seen, times=4.0, to=float(step))


def grown(coarse: MeanVisits, fine: MeanVisits, *, times: float, to: float) -> MeanVisits:
    """Extrapolate the mean visits in two trees to a tree with `to` times as many points as the tree of `fine`.

    The tree of `fine` has `times` as many points as the tree of `coarse`.

    >>> grown(MeanVisits(4, 2, 100), MeanVisits(16, 3, 400), times=4, to=16)
    MeanVisits(leaves=128.0, nodes=24.0, points=3200.0)
    """
    power = min(1.0, max(0.0, math.log(fine.points / coarse.points) / math.log(times)))
    power -= tuning.GROWTH_DAMPING * power**2
    return MeanVisits(*(part * to**power for part in fine))


def _count(choice: Open, most: int) -> int:
    """Return the number of queries that probe a tree, at most `most`."""
    return min(most, max(tuning.FIRST_PROBED, choice.m // tuning.PROBED_SHARE[choice.problem.device]))


def some_rows(rows: Any, count: int) -> Any:
    """Return at most `count` rows, evenly spaced."""
    return rows_apart(rows, -(-len(rows) // count))


def rows_apart(rows: Any, step: int) -> Any:
    """Return a contiguous copy of every `step`-th row."""
    part = rows[::step]
    return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part.contiguous()


def _chosen(choice: Decision, brute: float, tree: float, seen: MeanVisits) -> Decision:
    reason = (
        f"{brute:.3g} s expected by brute force, {tree:.3g} s by a k-d tree, {seen.leaves:.1f} leaves visited per row"
    )
    logger.info("auto takes method='%s': %s", choice.plan.method, reason)
    return choice._replace(reason=reason, by_data=True)
