"""method="auto" for a graph that may miss neighbours: NN-Descent, or the exact method that is expected to be fastest.

The two are compared by their expected times. If NN-Descent is clearly faster, the expected time is corrected for the
data, by the neighbours of a few hundred points: for their hardness (``nn_descent/planning/intrinsic_dimension.py``),
and for wide rows that do not contract (``nn_descent/cpu/short_rows.py``). If NN-Descent does not reach the recall, the
exact graph is built.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np

from tonari.core.errors import BudgetExceeded
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.progress import ProgressLike
from tonari.core.trail import part
from tonari.costs.model import arrival_seconds
from tonari.methods import tuning
from tonari.methods.auto import choose, some_rows
from tonari.methods.decision import Decision
from tonari.methods.registry import method_for, search_method
from tonari.nn_descent.backend import Known
from tonari.nn_descent.cpu.short_rows import contract
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.planning.intrinsic_dimension import NEIGHBOURS, ROWS, hardness
from tonari.nn_descent.planning.planner import expects_contraction, slowdown_uncontracted

logger = logging.getLogger("tonari")


def choose_graph(
    problem: Problem,
    points: Any,
    *,
    recall: float,
    seed: int | None,
    start: str,
    progress: ProgressLike = None,
) -> Decision:
    """Choose NN-Descent for a graph that may miss neighbours if it is clearly faster, else an exact method.

    Parameters
    ----------
    problem : Problem
        A self-join.
    points : checked rows
    recall, seed
        As for :func:`tonari.knn_graph`.
    start : str
        As in :class:`tonari.nn_descent.plan.DescentPlan`.
    progress : None, bool or callable(done, total)
    """
    exact = choose(problem, points, points, as_if=points, progress=progress)
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
        seconds *= _slowdown(problem, points, descent)
    reason = f"{exact.seconds:.3g} s expected by {exact.plan.method!r}, {seconds:.3g} s by NN-Descent"
    decision = exact._replace(reason=reason)
    if exact.seconds >= tuning.CLEARLY * seconds:
        decision = Decision(method, descent, None, seconds, reason, exact._replace(prepared=None))
    logger.info("auto takes method='%s': %s", decision.plan.method, reason)
    return decision


def is_clearly_faster(problem: Problem, descent: Plan, exact: Decision) -> bool:
    """Return whether NN-Descent is expected to be faster than an exact method by at least the factor CLEARLY."""
    return exact.seconds >= tuning.CLEARLY * (descent.seconds - arrival_seconds(problem))


def _slowdown(problem: Problem, points: Any, descent: DescentPlan) -> float:
    """Estimate, from exact neighbours of a sample, the ratio of NN-Descent's time on these points to its plan's.

    It takes longer if the data are hard, or if they do not contract although the plan expects this.
    """
    some, k = some_rows(points, min(len(points), ROWS)), min(len(points), NEIGHBOURS + 1)
    method = search_method("exact", problem.device)
    plan = method.plan(dataclasses.replace(problem, m=len(some), k=k, self_join=False))
    with part("neighbours of a few rows, for how hard they are for NN-Descent", len(some)):
        # Without the first neighbour, which is the row itself.
        distances, indices = (each[:, 1:] for each in method.search_once(some, points, plan, progress=False))
    factor = hardness(distances if isinstance(distances, np.ndarray) else distances.cpu().numpy(), problem.metric)
    if not expects_contraction(descent):
        return factor
    rows = np.arange(0, len(points), -(-len(points) // len(some)), dtype=np.int64)
    if contract(points, descent, Known(rows, indices[:, : descent.k])):
        return factor
    return factor * slowdown_uncontracted(descent)
