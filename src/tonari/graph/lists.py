"""The internal record of a graph's neighbour lists and properties, and the checks of the lists."""

from __future__ import annotations

import dataclasses
import functools
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors, first_repeated_row
from tonari.core.rows.slices import cut
from tonari.core.trail import Record
from tonari.graph import tuning
from tonari.methods.registry import NAMES, is_exact
from tonari.metrics import Metric, get_metric
from tonari.nn_descent.report import DescentReport

# arguments of knn_graph that restrict which points may be neighbours; a graph stores the names of those that were used
FILTERS = ("where", "batch", "exclude_within")


@dataclass(frozen=True, eq=False)
class Lists:
    """The contents of a :class:`tonari.KNNGraph`, which have not been checked.

    Attributes
    ----------
    found : Neighbors of shape (n, k)
    metric, method : str
    include_self : bool
        Whether column 0 is the point itself.
    seed : int, optional
    report : DescentReport, optional
    weights : tuple of float, optional
        The weights of the columns, if the metric was weighted; 1 / V for "seuclidean".
    record : Record, optional
        The record of the call that built the graph.
    transform : array of shape (d, p), optional
        The matrix that the rows were multiplied by, if there was one.
    filters : tuple of str
        The arguments of :func:`tonari.knn_graph` that restricted which points may be neighbours.
    """

    found: Neighbors
    metric: str
    method: str
    include_self: bool = False
    seed: int | None = None
    report: DescentReport | None = None
    weights: tuple[float, ...] | None = None
    record: Record | None = None
    transform: npt.NDArray[np.float64] | None = None
    filters: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.found.indices)

    @property
    def k(self) -> int:
        """Number of columns, including self if column 0 is self."""
        return int(self.found.indices.shape[1])

    @property
    def measure(self) -> Metric:
        """The record of the metric."""
        return get_metric(self.metric)

    @property
    def exact(self) -> bool:
        """Whether no neighbour can be missing, except points that a filter or a subset leaves out."""
        return self.method in NAMES and is_exact(self.method)

    def on_host(self) -> Lists:
        """Return this graph with NumPy arrays in host memory, copied from a device if necessary."""
        return dataclasses.replace(self, found=self.in_numpy())

    def in_numpy(self) -> Neighbors:
        """Return the lists as NumPy arrays.

        Lists from other libraries are converted, and checked after the conversion.
        """
        if isinstance(self.found.indices, np.ndarray):
            return self.found
        found = Neighbors(*(in_numpy(inputs.to_host(part)) for part in self.found))
        check_lists(
            found.indices,
            found.distances,
            np.arange(self.n),
            n=self.n,
            include_self=self.include_self,
            descending=self.measure.descending,
        )
        return found


def in_blocks(lists: Lists) -> Iterator[tuple[slice, Neighbors]]:
    """Yield slices of points, each with its neighbours in host memory; a column of the points themselves is left out.

    A graph that is mapped from a directory is read block by block.
    """
    found, first = lists.in_numpy(), int(lists.include_self)
    for rows in cut(lists.n, max(1, tuning.READ_AT_ONCE // lists.k)):
        yield rows, Neighbors(*(np.asarray(part[rows, first:]) for part in found))


def check_lists(
    indices: npt.NDArray[Any],
    distances: npt.NDArray[Any],
    own: npt.NDArray[Any],
    *,
    n: int,
    include_self: bool,
    descending: bool,
) -> None:
    """Check that rows of a graph are valid lists of neighbours.

    Parameters
    ----------
    indices, distances : arrays of shape (rows, k)
    own : integers of shape (rows,)
        The point of each row.
    n : int
        Number of points.
    include_self : bool
        Whether column 0 is the point itself. Its distance need not be the smallest, since by inner product a point may
        be more similar to another point than to itself.
    descending : bool
        Whether larger values are nearer.

    Raises
    ------
    ValueError
        A row is invalid; :class:`tonari.KNNGraph` lists the cases. The message names the first such row.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.graph.lists import check_lists
    >>> twice = np.array([[1, 2], [2, 2], [0, 1]]), np.array([[1.0, 2.0], [1.0, 1.0], [1.0, 2.0]])
    >>> check_lists(*twice, np.arange(3), n=3, include_self=False, descending=False)
    Traceback (most recent call last):
    ValueError: row 1 lists a point twice
    """
    step = max(1, tuning.CHECKED_AT_ONCE // indices.shape[1])
    for begin in range(0, len(indices), step):
        here = slice(begin, begin + step)
        ids, values, points = indices[here], distances[here], own[here]
        refuse = functools.partial(_refuse_rows, points)
        refuse((ids < -1) | (ids >= n), f"has an index outside -1 to {n - 1}")
        if include_self:
            refuse(ids[:, 0] != points, "does not have its own point in column 0")
        refuse(np.isnan(values), "has a distance that is NaN")
        ids, values = ids[:, int(include_self) :], values[:, int(include_self) :]
        refuse(ids == points[:, None], "has its own point among its neighbours")
        missing = ids < 0
        refuse(
            missing[:, :-1] & ~missing[:, 1:], "has a neighbour after a missing one (-1): missing ones must come last"
        )
        nowhere = -np.inf if descending else np.inf
        refuse(missing & (values != nowhere), f"has a distance for a missing neighbour (-1), expected {nowhere}")
        left, right = (values[:, 1:], values[:, :-1]) if descending else (values[:, :-1], values[:, 1:])
        refuse(
            left > right, f"is not in order: {'similarities must descend' if descending else 'distances must ascend'}"
        )
        repeated = first_repeated_row(ids)
        if repeated >= 0:
            raise ValueError(f"row {points[repeated]} lists a point twice")


def check_filters(filters: Any) -> tuple[str, ...]:
    """Return the names of filters in the order of `FILTERS`; raise ValueError for any other value.

    >>> check_filters(["batch", "where"])
    ('where', 'batch')
    """
    if isinstance(filters, str) or not isinstance(filters, Sequence) or any(name not in FILTERS for name in filters):
        known = ", ".join(map(repr, FILTERS))
        raise ValueError(f"filters={reprlib.repr(filters)}: expected a tuple of names of arguments, from {known}")
    return tuple(name for name in FILTERS if name in filters)


def refuse_filtered(filters: Sequence[str], name: str, instead: str) -> None:
    """Raise Unsupported for a graph that was built with filters; the message calls it `name` and advises `instead`."""
    if filters:
        by = " and ".join(f"{one}=" for one in filters)
        raise Unsupported(
            f"{name}: was built with {by}, so its lists leave out points that are nearer than its neighbours, expected "
            f"a graph without filters; {instead}"
        )


def _refuse_rows(points: npt.NDArray[Any], bad: npt.NDArray[np.bool_], what: str) -> None:
    """Raise ValueError for the first point whose list is marked in `bad`; `what` says why such a list is invalid."""
    rows = bad.any(axis=1) if bad.ndim == 2 else bad
    if rows.any():
        raise ValueError(f"row {points[rows.argmax()]} {what}")


def in_numpy(part: Any) -> npt.NDArray[Any]:
    """View an array in host memory as a NumPy array over the same memory."""
    array: npt.NDArray[Any] = part.detach().numpy() if inputs.kind_of(part) == "torch" else part
    return array


def plain_array(part: Any, name: str) -> Any:
    """Return the array; raise TypeError unless it is a NumPy array, a torch tensor, or any library's array on CUDA."""
    if not hasattr(part, "shape") or not hasattr(part, "dtype"):
        raise TypeError(f"{name}: expected an array of shape (n, k), got {type(part).__name__}")
    if isinstance(part, np.ndarray):
        inputs.refuse_masked(part, name)
        return np.asarray(part)
    if inputs.kind_of(part) == "numpy" and inputs.place_of(part, name) is None:
        raise TypeError(
            f"{name}: expected a NumPy array or a torch tensor in host memory, got {type(part).__name__}; use "
            "numpy.asarray(...)"
        )
    return part
