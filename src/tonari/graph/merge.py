"""Merge two graphs (GGM, wang2021 section 5): each point keeps its neighbours and is compared with the other side.

If one side is small, every point is compared with all points of the other side, exactly. Otherwise the lists of the
graphs are filled up with points of the other side, and rounds of NN-Descent compare points of different sides only.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tonari import inputs
from tonari._native import exact_values
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors
from tonari.core.plan import Plan
from tonari.core.progress import ProgressLike
from tonari.graph.build import knn_graph
from tonari.graph.knn_graph import KNNGraph, check_lists
from tonari.methods.place import Place, place_for, problem_of
from tonari.methods.registry import is_exact, method_for, search_method
from tonari.metrics import get_metric, is_own
from tonari.metrics.reference import returned
from tonari.nn_descent.driver import Measure, build, report_of
from tonari.nn_descent.method import NnDescent, beside_rows
from tonari.nn_descent.plan import DescentPlan, check_recall, check_seed
from tonari.nn_descent.report import DescentReport
from tonari.select.merge import merge_neighbors

_SHARE = 0.5  # of the seconds of a whole graph, for one that is merged
_OF_MERGE = ("graph_a", "points_a"), ("graph_b", "points_b")
_OF_ADD = ("the graph", "points"), ("the graph of new_points", "new_points")
_CHECKED_ROWS = 64  # of each graph: recomputing their distances takes a millisecond or two


@in_default_floats
def merge(
    graph_a: KNNGraph,
    graph_b: KNNGraph,
    points_a: Any,
    points_b: Any,
    *,
    recall: float = 0.99,
    seed: int = 0,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> KNNGraph:
    """Join the graphs of two sets of points into the graph of both.

    Parameters
    ----------
    graph_a, graph_b : KNNGraph
        With the same metric, k and include_self; exact or approximate.
    points_a, points_b : arrays of shape (n_a, d) and (n_b, d)
        The points of the graphs, of the same dtype, both in host memory or both on one device. The distances of 64
        rows of each graph are recomputed: a graph of other points, or of these in another order, is refused.
    recall : float
        Share of the true neighbours to find for the points of either side, as for :func:`tonari.knn_graph`. Neighbours
        that a graph lacks on its own side are not searched for.
    seed : int
        Seed of the random choices.
    device, threads, memory, progress
        As for :func:`tonari.knn_graph`. A copy of all points is needed in addition to `memory`.

    Returns
    -------
    KNNGraph of n_a + n_b points
        Points of b have their number plus n_a. The arrays are of the same library and on the same device as points_a.
        Two exact graphs of which one is small give an exact graph; otherwise `report` has the measured recall, of the
        side where it is lower.

    Raises
    ------
    TypeError, ValueError
        As for :func:`tonari.knn_graph`; graphs or points that do not match; a graph that was built from other points,
        naming the row and the neighbour.

    Warns
    -----
    UserWarning
        The recall was not reached.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0], [7.0]], dtype=np.float32)
    >>> left, right = tonari.knn_graph(line[:2], k=1), tonari.knn_graph(line[2:], k=1)
    >>> tonari.merge(left, right, line[:2], line[2:]).indices.ravel().tolist()
    [1, 0, 1, 2]
    """
    recall, seed, progress = _checked(recall, seed, threads, memory, progress)
    for name, graph in (("graph_a", graph_a), ("graph_b", graph_b)):
        if not isinstance(graph, KNNGraph):
            raise TypeError(f"{name}: expected a tonari.KNNGraph, got {type(graph).__name__}")
    for name in ("metric", "k", "include_self"):
        ours, theirs = getattr(graph_a, name), getattr(graph_b, name)
        if ours != theirs:
            raise ValueError(f"graph_a has {name}={ours!r}, graph_b {name}={theirs!r}: they must agree")
    sides = _Sides(graph_a, points_a, points_b, device)
    own = sides.own(graph_a, 0), sides.own(graph_b, 1)
    if sides.k == 0:
        return sides.graph(sides.place.no_others(sides.both, sides.metric), "exact")
    plan = sides.plan(recall, seed, threads, memory)
    crossing = _Crossing(sides, threads, memory)
    if crossing.seconds > _SHARE * plan.seconds:
        return sides.graph(*_descended(sides, own, plan, progress))
    both_exact = is_exact(graph_a.method) and is_exact(graph_b.method)
    return sides.graph(*crossing.run(own, None if both_exact else plan, progress))


@in_default_floats
def add(
    graph: KNNGraph,
    points: Any,
    new_points: Any,
    *,
    recall: float,
    seed: int,
    device: str | Sequence[str],
    threads: int | None,
    memory: int | str | None,
    progress: ProgressLike,
) -> KNNGraph:
    """Add points to a graph; see :meth:`tonari.KNNGraph.add`."""
    recall, seed, progress = _checked(recall, seed, threads, memory, progress)
    given: dict[str, Any] = {"device": device, "threads": threads, "memory": memory, "progress": progress}
    sides = _Sides(graph, points, new_points, device, _OF_ADD)
    metric, exact = graph.metric, is_exact(graph.method)
    sides.check(graph, 0)  # before a graph of the new points is made
    if sides.k == 0:
        return sides.graph(sides.place.no_others(sides.both, metric), "exact")
    if len(sides.b) > graph.k:
        asked = {"method": "exact"} if exact else {"recall": recall, "seed": seed}
        new = knn_graph(new_points, graph.k, metric=metric, include_self=graph.include_self, **asked, **given)
        merged = merge(graph, new, points, new_points, recall=recall, seed=seed, **given)
        if merged.report is None:
            return merged
        facts = {"seed": merged.seed, "report": merged.report.taken(sides.started)}
        lists = Neighbors(merged.distances, merged.indices)
        return KNNGraph.of_lists(lists, metric, merged.method, merged.include_self, **facts)
    own = sides.own(graph, 0)
    among = sides.place.no_others(sides.b, metric)
    if len(sides.b) > 1:
        among = sides.own(knn_graph(new_points, len(sides.b) - 1, metric=metric, **given), 1)
    plan = None if exact else sides.plan(recall, seed, threads, memory)
    return sides.graph(*_Crossing(sides, threads, memory).run((own, among), plan, progress))


def _checked(recall: Any, seed: Any, threads: Any, memory: Any, progress: Any) -> tuple[float, int, ProgressLike]:
    """Check the arguments, whether or not the chosen way uses them."""
    inputs.check_threads(threads)
    inputs.parse_memory(memory)
    return check_recall(recall), check_seed(seed), inputs.check_progress(progress)


class _Sides:
    """The two sets of points, checked, and the engine that does the work.

    Parameters
    ----------
    graph : KNNGraph
        The graph of one of them; the joined graph has its metric, k and include_self.
    points_a, points_b : arrays
    device : as for :func:`merge`
    names : tuple
        What messages call the graph and the points of each side.
    """

    def __init__(
        self,
        graph: KNNGraph,
        points_a: Any,
        points_b: Any,
        device: str | Sequence[str],
        names: tuple[tuple[str, str], tuple[str, str]] = _OF_MERGE,
    ) -> None:
        self.started = time.perf_counter()
        self._names = names
        (_, a), (_, b) = names
        self.place: Place = place_for(device, **{a: points_a, b: points_b})
        self.metric, self.include_self = graph.metric, graph.include_self
        if is_own(self.metric):
            raise ValueError(f"graphs by {self.metric!r} are not merged: only knn_graph supports a Triton function")
        self.k = graph.k - graph.include_self
        self.a, self.b = (self.place.rows(points, name, self.metric) for points, name in ((points_a, a), (points_b, b)))
        self._side = inputs.side_of(points_a, a)
        if isinstance(self.a, np.ndarray) != isinstance(self.b, np.ndarray):
            raise ValueError(
                f"{a} and {b} are on different devices, expected both in host memory or both on one device"
            )
        shapes = tuple(self.a.shape), tuple(self.b.shape)
        dtypes = inputs.name_of_dtype(self.a), inputs.name_of_dtype(self.b)
        if shapes[0][1] != shapes[1][1] or dtypes[0] != dtypes[1]:
            raise ValueError(
                f"{a} is {dtypes[0]} of shape {shapes[0]}, {b} {dtypes[1]} of shape {shapes[1]}: they must have the "
                "same dtype and number of columns"
            )

    @functools.cached_property
    def both(self) -> Any:
        """All points, those of a first."""
        return _one_after_the_other(self.a, self.b)

    def check(self, graph: KNNGraph, side: int) -> None:
        """Refuse a graph that was not built from the points of a side, judging by the distances of some rows."""
        rows, (ours, theirs) = (self.a, self.b)[side], self._names[side]
        if graph.n != len(rows):
            raise ValueError(f"{ours} has {graph.n} rows, {theirs} {len(rows)}: they must be the same points")
        value = "float64" if inputs.name_of_dtype(rows) == "float64" else "float32"
        if inputs.name_of_dtype(graph.distances) != value:
            held = inputs.name_of_dtype(graph.distances)
            raise ValueError(f"{ours} has distances in {held}, but those of {theirs} are in {value}")
        if graph.k > graph.include_self:
            _check_distances(graph, rows, ours, theirs)

    def own(self, graph: KNNGraph, side: int) -> Neighbors:
        """Return the lists of a graph without self, where the points of a side are."""
        self.check(graph, side)
        first = int(graph.include_self)
        if isinstance(self.a, np.ndarray):
            graph = graph.to_numpy()
            return Neighbors(graph.distances[:, first:], graph.indices[:, first:])
        lists = (self.place.there(part) for part in (graph.distances, graph.indices))
        return Neighbors(*(part[:, first:] for part in lists))

    @property
    def descent(self) -> NnDescent:
        """The method whose rounds join the lists."""
        return cast(NnDescent, method_for("nn-descent", self.place.device))

    def plan(self, recall: float, seed: int, threads: int | None, memory: int | str | None) -> DescentPlan:
        """The plan of NN-Descent for both."""
        given: dict[str, Any] = {"self_join": True, "threads": threads, "memory": memory}
        problem = problem_of(self.place, self.both, self.both, self.k, self.metric, **given)
        return self.descent.plan(problem, recall=recall, seed=seed, start="graph")

    def graph(
        self, found: Neighbors, method: str, seed: int | None = None, report: DescentReport | None = None
    ) -> KNNGraph:
        """Return the joined graph, of the same library and on the same device as the points of a."""
        if self.include_self:
            found = self.place.with_self(found, self.both, self.metric)
        found = Neighbors(*(inputs.hand_back(part, self._side) for part in found))
        if report is not None:
            report = report.taken(self.started)
        return KNNGraph.of_lists(found, self.metric, method, self.include_self, seed=seed, report=report)


def _check_distances(graph: KNNGraph, rows: Any, ours: str, theirs: str) -> None:
    """Refuse a graph whose distances in some rows are not those of the points; the names are for messages."""
    drawn = np.random.default_rng(0).choice(graph.n, min(graph.n, _CHECKED_ROWS), replace=False)
    numbers, metric = np.sort(drawn), get_metric(graph.metric)
    indices, distances = (_rows_at(part, numbers) for part in (graph.indices, graph.distances))
    facts: dict[str, Any] = {"include_self": graph.include_self, "descending": metric.descending}
    try:  # the lists of a graph on CUDA have not been checked
        check_lists(indices, distances, numbers, n=graph.n, **facts)
    except ValueError as error:
        raise ValueError(f"{ours}: {error}") from error
    indices, distances = (part[:, int(graph.include_self) :] for part in (indices, distances))
    listed, places = np.unique(np.maximum(indices, 0).astype(np.int64), return_inverse=True)
    values = np.empty(indices.shape)
    at = np.ascontiguousarray(places.reshape(indices.shape), np.int64)
    exact_values(graph.metric, _rows_at(rows, numbers), _rows_at(rows, listed), at, values)
    found = returned(values, distances.dtype)
    wrong = np.argwhere((found != distances) & (indices >= 0))
    if len(wrong):
        inputs.check_values(rows, theirs, first=0, nonnegative=metric.nonnegative)  # nor have these values
        place = tuple(wrong[0])
        row, other = numbers[place[0]], indices[place]
        raise ValueError(
            f"{ours}: row {row} lists point {other} with {graph.metric} {distances[place]}, but rows {row} and {other} "
            f"of {theirs} have {found[place]}: pass the points from which the graph was built, in the same order"
        )


_Made = tuple[Neighbors, str, int | None, DescentReport | None]


class _Crossing:
    """Search every point among all points of the other side, by brute force.

    Parameters
    ----------
    sides : _Sides
    threads, memory
        As for :func:`merge`.

    Attributes
    ----------
    seconds : float
        Expected, roughly.
    """

    def __init__(self, sides: _Sides, threads: int | None, memory: int | str | None) -> None:
        self._sides = sides
        self._method = search_method("exact", sides.place.device)

        def plan(queries: Any, points: Any) -> Plan:
            k = min(sides.k, len(points))
            problem = problem_of(sides.place, points, queries, k, sides.metric, threads=threads, memory=memory)
            made: Plan = self._method.plan(problem)
            return made

        self._plans = plan(sides.a, sides.b), plan(sides.b, sides.a)
        self.seconds = sum(made.seconds for made in self._plans)

    def run(self, own: tuple[Neighbors, Neighbors], measured: DescentPlan | None, progress: ProgressLike) -> _Made:
        """Return the joined lists, with the report of a sample if there is a plan for one."""
        started, sides = time.perf_counter(), self._sides
        k, metric, shifts = sides.k, sides.metric, (0, len(sides.a))
        from_b = self._method.search_once(sides.a, sides.b, self._plans[0], progress=progress)
        from_a = self._method.search_once(sides.b, sides.a, self._plans[1], progress=progress)
        of_a = merge_neighbors([own[0], from_b], shifts, k=k, metric=metric)
        of_b = merge_neighbors([from_a, own[1]], shifts, k=k, metric=metric)
        found = Neighbors(*(_one_after_the_other(*parts) for parts in zip(of_a, of_b, strict=True)))
        if measured is None:
            return found, "exact", None, None
        beside = Neighbors(*(sides.place.there(part) for part in found))
        estimate = Measure(sides.descent.backend(sides.both, measured), measured, len(sides.a))(beside)
        report = report_of(measured, estimate, [], time.perf_counter() - started)
        return found, measured.method, measured.seed, report


def _descended(sides: _Sides, own: tuple[Neighbors, Neighbors], plan: DescentPlan, progress: ProgressLike) -> _Made:
    """Return the joined lists, by rounds that compare points of different sides."""
    boundary = len(sides.a)
    ids = _one_after_the_other(own[0].indices, own[1].indices + (own[1].indices >= 0) * boundary)
    backend = sides.descent.backend(sides.both, plan)
    kept = backend.entries_of(sides.place.there(ids), new=False)
    seeds = backend.seeds(boundary, plan.list_size - sides.k)
    found, report = build(backend, plan, progress, backend.beside(kept, seeds), boundary)
    return beside_rows(found, sides.both), plan.method, plan.seed, report


def _rows_at(x: Any, numbers: Any) -> Any:
    """Copy some rows of an array or tensor to a NumPy array in host memory."""
    if isinstance(x, np.ndarray):
        return x[numbers]
    import torch

    tensor = inputs.as_tensor(x)
    return inputs.held(tensor[torch.from_numpy(numbers).to(tensor.device)].cpu())


def _one_after_the_other(first: Any, second: Any) -> Any:
    """Concatenate two arrays, or two tensors on the same device."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    import torch

    return torch.cat([first, second])
