"""Two sets of points and their graphs, checked against each other before they are merged."""

from __future__ import annotations

import functools
import time
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core._native import exact_values
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.draws import Purpose, generator
from tonari.core.trail import Record
from tonari.graph import tuning
from tonari.graph.lists import Lists, check_lists, refuse_filtered
from tonari.methods.call import Call
from tonari.methods.places.value_range import check_range
from tonari.methods.registry import method_for
from tonari.metrics import Metric
from tonari.metrics.reference import returned
from tonari.nn_descent.method import NnDescent
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.report import DescentReport

# The names of each side's graph and points in error messages.
OF_MERGE = ("graph_a", "points_a"), ("graph_b", "points_b")
OF_ADD = ("the graph", "points"), ("the graph of new_points", "new_points")


class Sides:
    """Two checked sets of points whose graphs are merged, and the device of the merge.

    Parameters
    ----------
    lists : Lists
        The graph of one set, which has the metric, k and include_self of the merged graph.
    points_a, points_b : arrays
    call : Call
        The call for the points of both sides, with the metric of the graph.
    names : tuple
        The names of the graph and the points of each side, for messages.
    """

    def __init__(
        self,
        lists: Lists,
        points_a: Any,
        points_b: Any,
        call: Call,
        names: tuple[tuple[str, str], tuple[str, str]] = OF_MERGE,
    ) -> None:
        self.started = time.perf_counter()
        self._names = names
        (_, a), (_, b) = names
        self.call, self.place, self.measure = call, call.place, call.metric
        self.metric, self.include_self = lists.metric, lists.include_self
        refuse_unsupported(self.measure)
        self.k = lists.k - lists.include_self
        self.a, self.b = (
            self.place.rows(points, name, self.measure) for points, name in ((points_a, a), (points_b, b))
        )
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

    @property
    def n(self) -> int:
        """Number of points of both sides."""
        return len(self.a) + len(self.b)

    @functools.cached_property
    def both(self) -> Any:
        """The points of both sides in one array: first `points_a`, then `points_b`."""
        return one_after_the_other(self.a, self.b)

    def check(self, lists: Lists, side: int) -> None:
        """Raise ValueError if a graph's distances differ from the distances between its points."""
        check_graph(lists, (self.a, self.b)[side], *self._names[side])

    def own(self, lists: Lists, side: int, *, checked: bool = False) -> Neighbors:
        """Check the graph of a side, and return its lists without the column of the points themselves.

        If `checked` is True, the caller has checked the graph. The lists stay on the device of the graph.
        """
        if not checked:
            self.check(lists, side)
        first = int(lists.include_self)
        found = lists.in_numpy() if isinstance(self.a, np.ndarray) else lists.found
        return Neighbors(*(part[:, first:] for part in found))

    def beside_points(self, found: Neighbors) -> Neighbors:
        """Copy neighbour lists to the device of the points."""
        return found if isinstance(self.a, np.ndarray) else Neighbors(*map(self.place.there, found))

    @property
    def descent(self) -> NnDescent:
        """NN-Descent as the search method on the device of the points; its rounds merge the lists."""
        return cast(NnDescent, method_for("nn-descent", self.place.device))

    def plan(self, recall: float, seed: int, update: str | None = None) -> DescentPlan:
        """Plan NN-Descent for the points of both sides."""
        problem = self.call.problem(self.both, self.both, self.k, self_join=True)
        named = {} if update is None else {"update": update}
        return self.descent.plan(problem, recall=recall, seed=seed, start="graph", **named)

    def joined(
        self,
        found: Neighbors,
        method: str,
        seed: int | None = None,
        report: DescentReport | None = None,
        *,
        record: Record,
    ) -> Lists:
        """Return the merged graph, in the library and on the device of `points_a`."""
        check_range(found.distances, found.indices, None, self.both, self.both, self.measure)
        if self.include_self:
            found = self.place.with_self(found, self.both, self.measure)
        found = Neighbors(*(inputs.hand_back(part, self._side) for part in found))
        if report is not None:
            report = report.taken(self.started)
        return Lists(found, self.metric, method, self.include_self, seed, report, record=record)


def refuse_unsupported(measure: Metric) -> None:
    """Raise ValueError or Unsupported if graphs with this metric cannot be merged or changed."""
    if measure.own:
        raise ValueError(
            f"graphs by {measure.name!r} cannot be merged or changed: only knn_graph supports a Triton function"
        )
    if measure.bits or measure.missing:
        raise Unsupported(
            f"graphs by {measure.name!r} cannot be merged or changed: use tonari.knn_graph on all points together"
        )


def refuse_filters(lists: Lists, name: str) -> None:
    """Refuse a graph that was built with filters, because later searches would ignore the filters."""
    instead = "build the graph of all points, or of the changed points, by knn_graph with the same filters"
    refuse_filtered(lists.filters, name, instead)


def refuse_incomplete(lists: Lists, name: str) -> None:
    """Refuse an exact graph with lists that are shorter than k, such as the result of `KNNGraph.subset`."""
    if not lists.exact:
        return
    indices = lists.found.indices
    missing = (indices if isinstance(indices, np.ndarray) else inputs.as_tensor(indices)) < 0
    if missing.any():
        short = np.asarray(inputs.to_host(missing)).sum(axis=1)
        row, k = int(short.argmax()), lists.k - lists.include_self
        raise ValueError(
            f"{name}: row {row} has {k - short[row]} neighbours, expected {k}: an exact graph with shorter lists was "
            "built with filters, or has some of the points of another graph; build the graph of all points, or of the "
            "changed points, by knn_graph"
        )


def check_graph(lists: Lists, rows: Any, ours: str, theirs: str) -> None:
    """Raise ValueError if a graph was built from other points, judging by the distances in a sample of its rows.

    In messages, the graph is called `ours`, and the points are called `theirs`.
    """
    if lists.n != len(rows):
        raise ValueError(f"{ours} has {lists.n} rows, {theirs} {len(rows)}: they must be the same points")
    value = "float64" if inputs.name_of_dtype(rows) == "float64" else "float32"
    if inputs.name_of_dtype(lists.found.distances) != value:
        dtype = inputs.name_of_dtype(lists.found.distances)
        raise ValueError(f"{ours} has distances in {dtype}, but those of {theirs} are in {value}")
    if lists.k > lists.include_self:
        _check_distances(lists, rows, ours, theirs)


def _check_distances(lists: Lists, rows: Any, ours: str, theirs: str) -> None:
    """Recompute the distances in a sample of lists; raise ValueError if any differs from the distance in the graph."""
    drawn = generator(0, Purpose.LISTS).choice(lists.n, min(lists.n, tuning.CHECKED_ROWS), replace=False)
    numbers, metric = np.sort(drawn), lists.measure
    indices, distances = (_rows_at(part, numbers) for part in (lists.found.indices, lists.found.distances))
    try:  # the constructor of KNNGraph does not check lists on CUDA
        check_lists(
            indices,
            distances,
            numbers,
            n=lists.n,
            include_self=lists.include_self,
            descending=metric.descending,
        )
    except ValueError as error:
        raise ValueError(f"{ours}: {error}") from error
    indices, distances = (part[:, int(lists.include_self) :] for part in (indices, distances))
    listed, places = np.unique(np.maximum(indices, 0).astype(np.int64), return_inverse=True)
    values = np.empty(indices.shape)
    at = np.ascontiguousarray(places.reshape(indices.shape), np.int64)
    exact_values(lists.metric, _rows_at(rows, numbers), _rows_at(rows, listed), at, values)
    found = returned(values, distances.dtype)
    wrong = np.argwhere((found != distances) & (indices >= 0))
    if len(wrong):
        # report invalid values in the points, if these are the cause
        inputs.check_values(rows, theirs, first=0, nonnegative=metric.nonnegative)
        place = tuple(wrong[0])
        row, other = numbers[place[0]], indices[place]
        raise ValueError(
            f"{ours}: row {row} lists point {other} with {lists.metric} {distances[place]}, but rows {row} and {other} "
            f"of {theirs} have {found[place]}: pass the points from which the graph was built, in the same order"
        )


def _rows_at(x: Any, numbers: Any) -> Any:
    """Copy some rows of an array or tensor to a NumPy array in host memory."""
    if isinstance(x, np.ndarray):
        return x[numbers]
    import torch

    tensor = inputs.as_tensor(x)
    return inputs.held(tensor[torch.from_numpy(numbers).to(tensor.device)].cpu())


def one_after_the_other(first: Any, second: Any) -> Any:
    """Concatenate two arrays, or two tensors on the same device.

    Adjacent slices of one array are joined without a copy.
    """
    shape = len(first) + len(second), *first.shape[1:]
    if isinstance(first, np.ndarray):
        if _adjacent(first, second):
            return np.lib.stride_tricks.as_strided(first, shape, first.strides, writeable=False)
        return np.concatenate([first, second])
    import torch

    end = first.storage_offset() + first.numel()
    one_storage = first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    if one_storage and first.is_contiguous() and second.is_contiguous() and second.storage_offset() == end:
        return first.as_strided(shape, first.stride())
    return torch.cat([first, second])


def _adjacent(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """Whether two arrays are adjacent slices of one array, in this order."""
    if first.base is None or first.base is not second.base or not len(first) or not len(second):
        return False
    whole = first.flags.c_contiguous and second.flags.c_contiguous
    return whole and first.ctypes.data + first.nbytes == second.ctypes.data
