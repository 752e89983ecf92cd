"""`tonari.explain`: every method with what it is expected to take, or why it cannot solve the problem."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.floats import in_default_floats
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.units import MIB
from tonari.methods.auto import by_sizes, choose, choose_graph, is_clearly_faster
from tonari.methods.decision import Decision
from tonari.methods.place import problem_of
from tonari.methods.registry import NAMES, is_exact, method_for
from tonari.methods.where import place_for
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem

_LOOKS = "depends on the data: auto would search a sample of the points first; pass the arrays to let it look"


class Candidate(NamedTuple):
    """A method, as it would solve the problem.

    Attributes
    ----------
    method : str
    seconds : float or None
        Expected; None where it cannot.
    nbytes : int or None
        Memory beyond the input, on CUDA on each device.
    why_not : str
        Why it cannot solve the problem; "" where it can.
    plan : Plan or None
    """

    method: str
    seconds: float | None
    nbytes: int | None
    why_not: str
    plan: Plan | None


class Explanation(NamedTuple):
    """What `auto` takes, and what each method would.

    Attributes
    ----------
    method : str or None
        That `auto` takes; None where it depends on data that were not given.
    reason : str
    candidates : tuple of Candidate
        Exact methods before approximate ones.
    """

    method: str | None
    reason: str
    candidates: tuple[Candidate, ...]

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON, without the plans."""
        rows = [{name: value for name, value in made._asdict().items() if name != "plan"} for made in self.candidates]
        return {"method": self.method, "reason": self.reason, "candidates": rows}

    def __str__(self) -> str:
        lines = [f"{'auto':>12}  {self.method or '?'}: {self.reason}"]
        for made in self.candidates:
            told = made.why_not
            if made.seconds is not None and made.nbytes is not None:
                told = f"{made.seconds:.3g} s, {made.nbytes / MIB:,.1f} MiB"
            lines.append(f"{made.method:>12}  {told}")
        return "\n".join(lines)


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
) -> Explanation:
    """Say what each method would take for a search or a graph, and which one method="auto" takes.

    Parameters
    ----------
    queries : array of shape (m, d), its shape, or None
        As for :func:`tonari.search`; None for the graph of the points, as :func:`tonari.knn_graph` builds it.
    points : array of shape (n, d), or its shape
        With arrays `auto` looks at the data as it does for a search, which may take a part of the search's time. From
        shapes alone nothing is read, and where it depends on the data the answer says so.
    k : int
    metric, device, threads, memory
        As for :func:`tonari.search`; arrays that are not given are taken to be in host memory.
    recall : float, optional
        For a graph: what share of the true neighbours is enough, as for :func:`tonari.knn_graph`. Without it `auto`
        takes exact methods alone.
    dtype : dtype or its name, optional
        With shapes, that of the arrays. Default: float32.

    Returns
    -------
    Explanation
        With the method that `auto` takes, the reason, and for every method its expected seconds and bytes, or the
        sentence that says why it cannot solve the problem. Printed, it is a table.

    Raises
    ------
    TypeError, ValueError
        What :func:`tonari.search` refuses; one array and one shape; a dtype beside arrays.

    Notes
    -----
    Expected seconds come from sizes alone; for a k-d tree from points that fill their space evenly, which is why `auto`
    looks at the data before it takes one.

    Examples
    --------
    >>> import tonari
    >>> told = tonari.explain((10, 64), (1000, 64), 5, threads=1)
    >>> told.method, told.reason
    ('exact', 'brute force is done before a tree is built')
    """
    graph = queries is None
    shapes = _is_shape(points)
    if not graph and _is_shape(queries) != shapes:
        raise TypeError("queries and points: expected two arrays, or two shapes such as (10000, 128)")
    if dtype is not None and not shapes:
        raise ValueError("dtype is for shapes: arrays have their own; leave it out")
    if recall is not None and not graph:
        raise ValueError("recall is for graphs, got queries: pass queries=None, or leave recall out")
    name = get_metric(metric).name
    given: dict[str, Any] = {"self_join": graph, "threads": threads, "memory": memory}
    if shapes:
        problem = _problem_of_shapes(queries, points, k, name, device, dtype, given)
        look: Callable[[], Decision | None] = functools.partial(_from_sizes, problem, recall)
    else:
        place = place_for(device, points=points) if graph else place_for(device, queries=queries, points=points)
        base = place.rows(points, "points", name)
        rows = base if graph else place.rows(queries, "queries", name)
        inputs.same_width(rows, base)
        problem = problem_of(place, base, rows, k, name, **given)
        look = functools.partial(choose, problem, base, rows, progress=False)
        if recall is not None:
            asked: dict[str, Any] = {"recall": recall, "seed": None, "start": "clusters", "progress": False}
            look = functools.partial(choose_graph, problem, base, **asked)
    candidates = tuple(candidate(name, problem, recall) for name in NAMES)
    try:
        decision = look()
    except BudgetExceeded as error:
        return Explanation(None, str(error), candidates)
    if decision is None:
        return Explanation(None, _LOOKS, candidates)
    return Explanation(decision.plan.method, decision.reason, candidates)


def _problem_of_shapes(
    queries: Any, points: Any, k: int, metric: str, device: Any, dtype: npt.DTypeLike | None, given: dict[str, Any]
) -> Problem:
    """What is asked of arrays of these shapes, in host memory."""
    n, d = points
    m, width = points if queries is None else queries
    if width != d:
        raise ValueError(f"queries have {width} columns, points {d}: they must have the same number")
    devices = inputs.devices_for(device)
    return make_problem(
        n, m, d, k, dtype="float32" if dtype is None else dtype, metric=metric, devices=devices, **given
    )


def _from_sizes(problem: Problem, recall: float | None) -> Decision | None:
    """What sizes alone decide; None where it depends on the data."""
    decision = by_sizes(problem, problem.m)
    if not isinstance(decision, Decision):
        return None
    descent = None if recall is None else candidate("nn-descent", problem, recall).plan
    return None if descent is not None and is_clearly_faster(problem, descent, decision) else decision


def candidate(name: str, problem: Problem, recall: float | None) -> Candidate:
    """A method by name, as it would solve a problem."""
    given = {} if is_exact(name) else {"recall": recall}
    try:
        plan = method_for(name, problem.device).plan(problem, **given)
    except (Unsupported, BudgetExceeded) as why_not:
        return Candidate(name, None, None, str(why_not), None)
    return Candidate(name, plan.seconds, plan.total_bytes, "", plan)


def _is_shape(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2 and all(isinstance(size, int) for size in x)
