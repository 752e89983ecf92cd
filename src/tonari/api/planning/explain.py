"""`tonari.explain`: the expected time and memory of each method, or the reason why it cannot solve the problem."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.process.floats import in_default_floats
from tonari.core.trail import Record, recording
from tonari.core.units import MIB
from tonari.methods.answer import answer, build_graph
from tonari.methods.auto import by_sizes, choose, without_looking
from tonari.methods.auto_graph import choose_graph, is_clearly_faster
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.methods.options import Options
from tonari.methods.places.place import may_take_fewer
from tonari.methods.places.points import Points
from tonari.methods.registry import NAMES, is_exact, method_for
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem, usual_dtype

_UNDECIDED = "depends on the data: auto would search a sample of the points first; pass the arrays to let it look"


class Candidate(NamedTuple):
    """A method that `auto` considers, with its expected time and memory for the problem.

    Attributes
    ----------
    method : str
    seconds : float or None
        Expected duration; None if the method cannot solve the problem.
    nbytes : int or None
        Memory beyond the input (on CUDA, per device); None if the method cannot solve the problem.
    why_not : str
        Why the method cannot solve the problem; "" if it can.
    plan : Plan or None
    """

    method: str
    seconds: float | None
    nbytes: int | None
    why_not: str
    plan: Plan | None


class Explanation(NamedTuple):
    """The method that `auto` chooses, and the expected time and memory of each method.

    Attributes
    ----------
    method : str or None
        The method that `auto` chooses; None if the choice depends on data and only shapes were given.
    reason : str
    candidates : tuple of Candidate
        Exact methods before approximate ones.
    record : Record, optional
        With ``run=True``, the record of the run. Its `choices` are the choices made after the plan, each with its
        reason. Its `attempts` are the passes over queries, each with its duration in seconds and the number of queries
        whose neighbours it certified.
    """

    method: str | None
    reason: str
    candidates: tuple[Candidate, ...]
    record: Record | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON; the plans of candidates are left out."""
        rows = [{name: value for name, value in made._asdict().items() if name != "plan"} for made in self.candidates]
        facts = {"method": self.method, "reason": self.reason, "candidates": rows}
        return facts if self.record is None else facts | {"record": self.record.as_dict()}

    def __str__(self) -> str:
        lines = [f"{'auto':>12}  {self.method or '?'}: {self.reason}"]
        for candidate in self.candidates:
            text = candidate.why_not
            if candidate.seconds is not None and candidate.nbytes is not None:
                text = f"{candidate.seconds:.3g} s, {candidate.nbytes / MIB:,.1f} MiB"
                if candidate.plan is not None and candidate.plan.devices_chosen:
                    text += f"; devices: {candidate.plan.devices_chosen}"
            lines.append(f"{candidate.method:>12}  {text}")
        return "\n".join(lines if self.record is None else [*lines, "", *self.record.lines()])


@in_default_floats
def explain(
    queries: Any,
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    device: Any = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    recall: float | None = None,
    dtype: npt.DTypeLike | None = None,
    run: bool = False,
) -> Explanation:
    """Estimate the time and memory of each method for a search or graph, and report the choice of method="auto".

    With ``run=True`` the chosen method is also run. The result then includes the choices that were made during the run,
    and all attempts: passes over some of the queries, each at one precision level or by one method.

    Parameters
    ----------
    queries : array of shape (m, d), its shape, or None
        As for :func:`tonari.search`; None for a graph of the points, as built by :func:`tonari.knn_graph`.
    points : array of shape (n, d), or its shape
        For arrays, `auto` examines the data as in a search, which may take part of the time of a search. For shapes, no
        data are read; if the choice depends on the data, the result says so.
    k : int
    metric, device, threads, memory
        As for :func:`tonari.search`. If shapes are given, the arrays are assumed to be in host memory.
    recall : float, optional
        For a graph: the share of the true neighbours that is enough, as for :func:`tonari.knn_graph`. Without it,
        `auto` considers only exact methods.
    dtype : dtype or its name, optional
        dtype of the arrays, if shapes are given. Default: float32, and uint8 for bits.
    run : bool
        Search as well, without returning the neighbours, and record the choices and attempts of the search. On CUDA
        each attempt then waits for the device, so that it has a duration.

    Returns
    -------
    Explanation
        The method that `auto` chooses, the reason, and for every method its expected seconds and bytes, or a sentence
        that says why it cannot solve the problem. It prints as a table.

    Raises
    ------
    TypeError, ValueError
        For arguments that :func:`tonari.search` refuses, for a mixture of an array and a shape, for a dtype in
        addition to arrays, or for ``run=True`` with shapes.

    Notes
    -----
    Expected seconds depend only on sizes. For a k-d tree they assume uniformly distributed points, so `auto` examines
    the data before it chooses a tree.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> explanation = tonari.explain((100_000, 64), (1_000_000, 64), 5, threads=1)
    >>> explanation.method, explanation.reason
    ('exact', 'beyond 30 dimensions the boxes of a tree exclude nothing')
    >>> line = np.arange(20, dtype=np.float32)[:, None]
    >>> ran = tonari.explain(line[:5], line, 3, run=True).record
    >>> [(attempt.name, attempt.rows, attempt.proved) for attempt in ran.attempts]
    [('exact values', 5, 5)]
    """
    graph = queries is None
    shapes = _is_shape(points)
    if not graph and _is_shape(queries) != shapes:
        raise TypeError("queries and points: expected two arrays, or two shapes such as (10000, 128)")
    if dtype is not None and not shapes:
        raise ValueError("dtype is for shapes, but arrays were given, which have their own: leave dtype out")
    if recall is not None and not graph:
        raise ValueError("recall is for graphs, but queries were given: pass queries=None, or leave recall out")
    if inputs.check_flag(run, "run") and shapes:
        raise ValueError("run=True searches, but shapes were given: pass the arrays")
    name = get_metric(metric).name
    options: dict[str, Any] = {"self_join": graph, "threads": threads, "memory": memory}
    if shapes:
        problem = _problem_of_shapes(queries, points, k, name, device, dtype, options)
        look: Callable[[], Decision | None] = functools.partial(_from_sizes, problem, recall)
        search: Callable[[Decision], object] | None = None
    else:
        arrays = {"points": points} if graph else {"queries": queries, "points": points}
        call = Call.of(arrays, Options(metric, device=device, threads=threads, memory=memory))
        rows, base = call.both(points if graph else queries, points)
        problem = call.problem(base, rows, k, self_join=graph)
        look = functools.partial(choose, problem, base, rows, progress=False)
        if recall is not None:
            settings: dict[str, Any] = {"recall": recall, "seed": None, "start": "clusters", "progress": False}
            look = functools.partial(choose_graph, problem, base, **settings)
        search = functools.partial(_search, Points(base, call), rows, k, graph, recall is None)
    candidates = tuple(candidate(name, problem, recall) for name in NAMES)
    try:
        if run and search is not None:
            with recording("knn_graph" if graph else "search", problem.m, timed=True) as record:
                decision = look()
                assert decision is not None  # arrays were passed, so their data can decide where sizes do not
                search(decision)
            return Explanation(decision.plan.method, decision.reason, candidates, record)
        decision = look()
    except BudgetExceeded as error:
        return Explanation(None, str(error), candidates)
    if decision is None:
        return Explanation(None, _UNDECIDED, candidates)
    return Explanation(decision.plan.method, decision.reason, candidates)


def _search(points: Points, rows: Any, k: int, graph: bool, exact: bool, decision: Decision) -> None:
    """Run the search as a public function would: replay a captured CUDA graph, or else run the decision."""
    if exact and points.replayed(rows, k, False, self_join=graph) is not None:
        return
    metric = points.call.metric
    if graph:
        build_graph(points.rows, decision, metric, False)
    else:
        answer(rows, points.rows, decision, metric, False)


def _problem_of_shapes(
    queries: Any, points: Any, k: int, metric: str, device: Any, dtype: npt.DTypeLike | None, given: dict[str, Any]
) -> Problem:
    """Return the Problem of a search of arrays with these shapes in host memory."""
    n, d = points
    m, width = points if queries is None else queries
    if width != d:
        raise ValueError(f"queries have {width} columns, points {d}: they must have the same number")
    devices = inputs.devices_for(device)
    problem = make_problem(
        n, m, d, k, dtype=usual_dtype(metric) if dtype is None else dtype, metric=metric, devices=devices, **given
    )
    return dataclasses.replace(problem, may_take_fewer=may_take_fewer(device))


def _from_sizes(problem: Problem, recall: float | None) -> Decision | None:
    """Decide by the sizes alone, or return None if the decision depends on the data."""
    judged = by_sizes(problem, problem.m)
    decision = judged if isinstance(judged, Decision) else without_looking(judged) if recall is None else None
    if decision is None:
        return None
    descent = None if recall is None else candidate("nn-descent", problem, recall).plan
    return None if descent is not None and is_clearly_faster(problem, descent, decision) else decision


def candidate(name: str, problem: Problem, recall: float | None) -> Candidate:
    """Return the method with this name as a Candidate for a problem."""
    options = {} if is_exact(name) else {"recall": recall}
    try:
        plan = method_for(name, problem.device).plan(problem, **options)
    except (Unsupported, BudgetExceeded) as why_not:
        return Candidate(name, None, None, str(why_not), None)
    return Candidate(name, plan.seconds, plan.total_bytes, "", plan)


def _is_shape(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2 and all(isinstance(size, int) for size in x)
