"""Rows that are prepared once, and among which neighbours of all or some rows are found within one radius."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.sparse.answers import SparseCall, are_sparse, changed_rows
from tonari.api.within_call import WithinCall
from tonari.core.process.floats import in_default_floats
from tonari.core.results.pairs import Pairs, pairs_of
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.methods.call import Call, Radius
from tonari.methods.options import Options, columns_of
from tonari.metrics.transforms.change import change_for


def one_radius(rows: Any, radius: float, **options: Any) -> OneRadius | SparseOneRadius:
    """Prepare dense or sparse rows for searches within one radius; see :class:`OneRadius`."""
    return (SparseOneRadius if are_sparse(rows) else OneRadius)(rows, radius, **options)


class OneRadius:
    """Dense rows in host memory, prepared for searches within one radius; results are NumPy arrays.

    For some metrics, rows are transformed before they are compared (``metrics/transforms/``); distances in results are
    then those of the base metric between the transformed rows.

    Parameters
    ----------
    rows : array of shape (n, d)
    radius : float
        A row is a neighbour if its distance by `metric`, as :func:`tonari.search` returns it, is at most this number.
    metric, method, device, threads, memory
        As for :func:`tonari.radius_search`. `memory` does not include results.
    **columns
        `weights`, `VI`, `covariance` or `V`, as for :func:`tonari.search`.

    Attributes
    ----------
    row_bytes : int
        The bytes that :meth:`lists` takes for a copy of each requested row.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.api.one_radius import OneRadius
    >>> line = OneRadius(np.array([[0.0], [1.0], [3.0]]), 2.0)
    >>> line.counts().tolist(), line.lists(np.array([2])).indices.tolist(), line.pairs(slice(1, 3)).right.tolist()
    ([2, 3, 2], [2, 1], [2])
    """

    @in_default_floats
    def __init__(
        self,
        rows: npt.NDArray[Any],
        radius: float,
        *,
        metric: str = "euclidean",
        method: str = "auto",
        device: Any = "auto",
        threads: int | None = None,
        memory: int | None = None,
        **columns: Any,
    ) -> None:
        change, limit = change_for(metric, **columns), Radius(radius)
        if change is not None:
            limit, rows = Radius(**change.within(len(rows), **limit._asdict())), change.rows(rows, "points")
            metric = change.base
        call = Call.of({"points": rows}, Options(metric, method, device, threads, memory, progress=False))
        self._rows, points, self._limits = WithinCall.of(call, rows, rows, limit)
        self.row_bytes = int(self._rows.nbytes) // len(self._rows)
        self._points = points.decided_within(self._rows, self._limits, False)

    @in_default_floats
    def counts(self) -> npt.NDArray[np.int64]:
        """Count the rows within the radius of each row, itself included."""
        counts: npt.NDArray[np.int64] = np.asarray(inputs.to_host(self._points.count(self._rows, self._limits, False)))
        return counts

    @in_default_floats
    def lists(self, ids: npt.NDArray[np.int64]) -> RadiusNeighbors:
        """Find the rows within the radius of each of the rows `ids`, itself included."""
        found = self._points.within(inputs.rows_at(self._rows, ids), self._limits[ids], False)
        return RadiusNeighbors(*(np.asarray(inputs.to_host(part)) for part in found))

    @in_default_floats
    def pairs(self, part: slice) -> Pairs:
        """Find all pairs of a row in the slice `part` and a later row within the radius."""
        found = pairs_of(self._points.pairs(part, self._limits, False), part.start)
        return Pairs(*(np.asarray(inputs.to_host(each)) for each in found))


class SparseOneRadius:
    """Sparse rows, prepared for searches within one radius, with the interface of :class:`OneRadius`."""

    def __init__(self, rows: Any, radius: float, *, metric: str = "euclidean", **options: Any) -> None:
        change, limit = change_for(metric, **columns_of(options)), Radius(radius)
        if change is not None:
            rows, metric = changed_rows(change, rows, "points"), change.base
            limit = Radius(**change.within(len(rows), **limit._asdict()))
        call = SparseCall.of(rows, rows, Options.of(metric, options | {"progress": False}))
        self._rows, self._limits = call.queries, call.limits(limit)
        self.row_bytes = self._rows.nbytes // max(1, len(self._rows))
        problem = call.among.problem(self._rows, 1)
        prepared, _ = call.among.ready(self._rows, problem, within=True)
        self._among = dataclasses.replace(call.among, prepared=prepared)

    def counts(self) -> npt.NDArray[np.int64]:
        """Count the rows within the radius of each row, itself included."""
        return self._among.count(self._rows, self._limits)

    def lists(self, ids: npt.NDArray[np.int64]) -> RadiusNeighbors:
        """Find the rows within the radius of each of the rows `ids`, itself included."""
        return self._among.within(self._rows.take(ids), self._limits[ids])

    def pairs(self, part: slice) -> Pairs:
        """Find all pairs of a row in the slice `part` and a later row within the radius."""
        found = self._among.within(self._rows, self._limits, own=True, later=True, rows=part)
        return pairs_of(found, part.start)
