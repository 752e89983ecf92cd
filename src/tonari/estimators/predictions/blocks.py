"""Search of the fitted rows; within a radius, for one block of queries after another, to stay within a memory budget.

The lengths of the neighbour lists are unknown before a search. Unless lists of all points would fit in memory, the
points within the radius are therefore counted first, and each block gets as many queries as the budget allows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.api.index.index import Index
from tonari.api.radius import radius_count, radius_search
from tonari.api.searching import search
from tonari.api.user_metrics.call import is_given
from tonari.core.errors import BudgetExceeded
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.estimators import tuning
from tonari.metrics.names import PRECOMPUTED


class Rows:
    """The fitted rows of an estimator, with an Index that is built at the first search."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self._index: Index | None = None

    def prepared(self, how: dict[str, Any]) -> Index | GivenRows:
        """Return an object that searches the fitted rows: an Index, or GivenRows for a metric without an Index."""
        if is_given(how["metric"]):
            return GivenRows(self.array, how)
        if self._index is None:
            self._index = Index(self.array, **how)
        return self._index


class GivenRows:
    """Fitted rows for metrics that Index does not support: functions, and "precomputed" distances.

    Attributes
    ----------
    array : array of shape (n, d), or (n, n) for "precomputed"
        The fitted rows, or the distances between them.
    how : dict
        The keyword arguments of each search.
    """

    def __init__(self, array: Any, how: dict[str, Any]) -> None:
        self.array, self.how = array, how

    def search(self, queries: Any, k: int, *, threads: int | None) -> Neighbors:
        """Find the k nearest fitted rows of each query; for "precomputed", a query is a row of distances to them."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        found: Neighbors = search(queries, points, k, **self.how | {"threads": threads})
        return found

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def radius_search(
        self, queries: Any, radius: Any, *, threads: int | None, progress: bool | None = None
    ) -> RadiusNeighbors:
        """Find the fitted rows within a radius of each query."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        return radius_search(queries, points, radius, **self.how | {"threads": threads, "progress": progress})

    def radius_count(self, queries: Any, radius: Any, *, threads: int | None, progress: bool | None = None) -> Any:
        """Count the fitted rows within a radius of each query."""
        points = None if self.how["metric"] == PRECOMPUTED else self.array
        return radius_count(queries, points, radius, **self.how | {"threads": threads, "progress": progress})


_ENTRY_BYTES = 96  # bytes of memory for one entry of a neighbour list, including the values computed from it


@dataclass(frozen=True)
class Budget:
    """The memory budget of an estimator: fixed arrays, and two equal shares for searches and for their results.

    Attributes
    ----------
    memory : int, optional
        The budget in bytes. None: searches plan their own memory, and the number of neighbours in memory is limited.
    fixed : int
        Bytes of the arrays that exist during the whole call.

    Examples
    --------
    >>> budget = Budget(10_000, fixed=400)
    >>> budget.searching, budget.entries
    (4800, 50)
    >>> budget.blocks(np.array([20, 20, 40, 3, 0]))
    [slice(0, 2, None), slice(2, 5, None)]
    """

    memory: int | None
    fixed: int = 0

    @property
    def searching(self) -> int | None:
        """The bytes that searches may use; None if the budget is not set."""
        return None if self.memory is None else max(1, (self.memory - self.fixed) // 2)

    @property
    def entries(self) -> int:
        """The maximum number of neighbours that the lists of a block of queries may contain together."""
        return tuning.RADIUS_ENTRIES if self.searching is None else self.searching // _ENTRY_BYTES

    def blocks(self, counts: npt.NDArray[np.int64], row_bytes: int = 0) -> list[slice]:
        """Cut queries into consecutive blocks whose neighbour lists fit in memory.

        Each query takes the memory of its neighbours, of one more neighbour, and of its row.

        Parameters
        ----------
        counts : int64 array of shape (m,)
            The number of neighbours of each query.
        row_bytes : int
            Bytes of a query's row if the search copies it, else 0.

        Raises
        ------
        BudgetExceeded
            The list of a single query does not fit.
        """
        if not len(counts):
            return []
        sizes = counts + (1 + -(-row_bytes // _ENTRY_BYTES))
        most = int(sizes.max())
        if self.memory is not None and most > self.entries:
            least = self.fixed + 2 * most * _ENTRY_BYTES
            row = int(counts.argmax())
            raise BudgetExceeded(
                f"memory={self.memory}: the list of row {row} has {counts.max()} rows within the radius; "
                f"allow at least {least}, or choose a smaller radius",
                least=least,
            )
        ends = np.cumsum(sizes)
        parts, begin, held = [], 0, 0
        while begin < len(ends):
            stop = max(begin + 1, int(np.searchsorted(ends, held + self.entries, side="right")))
            parts.append(slice(begin, stop))
            begin, held = stop, int(ends[stop - 1])
        return parts

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        """If a search needs more than its share, raise BudgetExceeded with the bytes needed by the whole estimator."""
        try:
            yield
        except BudgetExceeded as error:
            if self.memory is None or error.least is None:
                raise
            least = self.fixed + 2 * error.least
            raise BudgetExceeded(
                f"memory={self.memory}: allow at least {least}: {error.least} for searches, as much for the lists "
                f"that they find, and {self.fixed} for other arrays",
                least=least,
            ) from error


def lists_within(
    index: Index | GivenRows,
    rows: npt.NDArray[Any],
    radius: float,
    budget: Budget,
    *,
    threads: int | None = None,
    counts: npt.NDArray[np.int64] | None = None,
) -> Iterator[tuple[slice, RadiusNeighbors]]:
    """Yield for each block of queries its slice of `rows` and the points within the radius of these queries.

    Parameters
    ----------
    index : Index or GivenRows
        The points, prepared with the budget's share for searches.
    rows : checked rows of shape (m, d)
        The queries.
    radius : float
    budget : Budget
    threads : int, optional
    counts : int64 array of shape (m,), optional
        The number of points within the radius of each query, if known.

    Raises
    ------
    BudgetExceeded
        A search, or the list of a single row, does not fit.
    """
    m, n = rows.shape[0], len(index)
    with budget.refusals():
        if counts is None and budget.entries // (n + 1) >= min(m, tuning.UNCOUNTED_ROWS):
            counts = np.full(m, n)
        elif counts is None:
            counts = index.radius_count(rows, radius, threads=threads, progress=False)
    for part in budget.blocks(counts):
        with budget.refusals():
            found = index.radius_search(rows[part], radius, threads=threads, progress=False)
        yield part, found
        del found


def without_own(found: RadiusNeighbors, first: int) -> RadiusNeighbors:
    """Remove each query from its own list, where the queries are the points `first`, `first` + 1, and so on.

    >>> without_own(RadiusNeighbors(np.array([0, 2, 4]), np.array([4, 7, 4, 5]), np.zeros(4)), 4).indices
    array([7, 4])
    """
    indptr, indices, distances = found
    others = indices != np.repeat(np.arange(first, first + len(indptr) - 1), np.diff(indptr))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(others)])
    return RadiusNeighbors(before[indptr], indices[others], distances[others])
