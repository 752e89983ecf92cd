"""Derive a graph from another without a search: fewer neighbours, some of the points, or another order of the points.

A list is ordered by (distance, index). When points get new row numbers, neighbours at equal distances are sorted again;
missing neighbours stay at the end.
"""

from __future__ import annotations

import dataclasses
import reprlib
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.graph.lists import Lists
from tonari.inputs.arrays.kinds import from_host

Graph = TypeVar("Graph", bound="Reshaped")


def trim(lists: Lists, k: int) -> Lists:
    """Keep the first k columns; see :meth:`tonari.KNNGraph.trim`."""
    k = inputs.check_count(k, "k")
    if k > lists.k:
        raise ValueError(f"k={reprlib.repr(k)}: the graph has {lists.k} columns")
    return dataclasses.replace(lists, found=Neighbors(*(part[:, :k] for part in lists.found)), report=None, record=None)


def subset(lists: Lists, rows: Any) -> Lists:
    """Keep some points; see :meth:`tonari.KNNGraph.subset`."""
    return _renumbered(lists, _numbers(rows, "rows", lists.n))


def permute(lists: Lists, order: Any) -> Lists:
    """Put the points in another order; see :meth:`tonari.KNNGraph.permute`."""
    numbers = _numbers(order, "order", lists.n)
    if len(numbers) != lists.n:
        raise ValueError(f"order: got {len(numbers)} numbers, expected each of the {lists.n} points once")
    return _renumbered(lists, numbers)


def _numbers(rows: Any, name: str, n: int) -> npt.NDArray[np.int64]:
    """Return the row numbers that an array or a mask selects; raise an error for repeated or invalid ones."""
    array = from_host(inputs.to_host(rows), name, "(m,)")
    if array.size and (array.ndim != 1 or array.dtype.kind not in "iub"):
        raise TypeError(f"{name}: expected whole numbers of shape (m,) or a mask of shape (n,), got {array.dtype}")
    if array.dtype == bool:
        if len(array) != n:
            raise ValueError(f"{name}: a mask of {len(array)} values for {n} points")
        array = np.flatnonzero(array)
    if not len(array):
        raise ValueError(f"{name}: no point is left, expected one or more")
    least, most = int(array.min()), int(array.max())
    if least < 0 or most >= n:
        raise ValueError(f"{name}: got {least if least < 0 else most}, expected numbers of points from 0 to {n - 1}")
    numbers = array.astype(np.int64)
    if np.bincount(numbers, minlength=n).max() > 1:
        raise ValueError(f"{name}: point {np.bincount(numbers).argmax()} comes more than once")
    return numbers


def _renumbered(lists: Lists, kept: npt.NDArray[np.int64]) -> Lists:
    """Return the lists of the points `kept`, in this order and with new row numbers; drop all other neighbours."""
    distances, indices = (part[kept] for part in lists.in_numpy())
    number = np.full(lists.n + 1, -1, np.int64)  # a missing neighbour, -1, reads number[-1], which stays -1
    number[kept] = np.arange(len(kept))
    ids = number[indices]
    descending = lists.measure.descending
    keys = -distances if descending else distances.copy()
    keys[ids < 0] = np.inf
    if lists.include_self:
        keys[:, 0] = -np.inf
    ids = np.where(ids < 0, lists.n, ids)  # sorts missing neighbours last, even if others are at an infinite distance
    order = np.lexsort((ids, keys), axis=1)
    ids = np.take_along_axis(ids, order, axis=1)
    values = np.take_along_axis(distances, order, axis=1)
    missing = ids == lists.n
    values[missing], ids[missing] = -np.inf if descending else np.inf, -1
    found = Neighbors(values, ids.astype(index_dtype(len(kept))))
    return dataclasses.replace(lists, found=found, report=None, record=None)


class Reshaped:
    """The methods of KNNGraph that return fewer neighbours, some of the points, or another order of the points."""

    if TYPE_CHECKING:

        @property
        def lists(self) -> Lists:
            """The graph's neighbour lists and properties, as a plain internal record."""

        @classmethod
        def of_lists(cls: type[Graph], lists: Lists) -> Graph:
            """Make a graph from an internal record, whose lists are not checked."""

    def trim(self: Graph, k: int) -> Graph:
        """Return the graph of the first k columns, which shares memory with this graph.

        Raises
        ------
        ValueError
            The graph has fewer columns.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=2)
        >>> graph.trim(1).indices.ravel().tolist()
        [1, 0, 1]
        """
        return self.of_lists(trim(self.lists, k))

    def subset(self: Graph, rows: Any) -> Graph:
        """Return the graph of some of the points, with their neighbours among these points.

        Neighbours that are not selected are removed from the lists, and -1 fills the end of each list, as for missing
        neighbours. To get k neighbours for each point, build the graph of ``points[rows]`` instead. A graph on CUDA is
        copied to host memory.

        Parameters
        ----------
        rows : integers of shape (m,), or a mask of shape (n,)
            Row numbers without repeats, or a mask. Point ``rows[i]`` of this graph is point i of the new one.

        Returns
        -------
        KNNGraph of m points and as many columns
            Lists are sorted by (distance, index), where indices are the new row numbers.

        Raises
        ------
        TypeError
            rows are neither whole numbers nor a mask.
        ValueError
            No point is selected, a number is out of range or occurs twice, or the mask has another length.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> graph = tonari.knn_graph(np.array([[0.0], [1.0], [3.0]], dtype=np.float32), k=2)
        >>> graph.subset([2, 0]).indices.tolist()
        [[1, -1], [0, -1]]
        """
        return self.of_lists(subset(self.lists, rows))

    def permute(self: Graph, order: Any) -> Graph:
        """Return the graph of ``points[order]``, without a search; a graph on CUDA is copied to host memory.

        Parameters
        ----------
        order : integers of shape (n,)
            A permutation of the row numbers. Point ``order[i]`` of this graph is point i of the new one.

        Raises
        ------
        TypeError, ValueError
            As for :meth:`subset`, or a point is absent.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> points = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
        >>> tonari.knn_graph(points, k=1).permute([2, 1, 0]).indices.ravel().tolist()
        [1, 2, 1]
        """
        return self.of_lists(permute(self.lists, order))
