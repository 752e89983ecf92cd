"""`tonari.kth_distance`: the distance of the k-th neighbour, without lists of neighbours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.api import tuning
from tonari.api.sparse.answers import are_sparse, changed_rows, sparse_kth
from tonari.api.user_metrics.answers import kth_given
from tonari.api.user_metrics.call import on_given_values
from tonari.api.wrappers.copies import counting_copies
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors
from tonari.graph.building.build import build_lists
from tonari.graph.lists import Lists
from tonari.methods import repeated
from tonari.methods.answer import answer
from tonari.methods.call import Call
from tonari.methods.options import Options, SearchOptions, columns_of, shares
from tonari.methods.places.points import Points
from tonari.metrics.transforms.change import change_for

if TYPE_CHECKING:
    from typing_extensions import Unpack


@repeated.repeating
@in_default_floats
@inputs.without_gradients("use the last column of tonari.knn_graph(..., differentiable=True).distances")
@on_given_values(kth_given)
@counting_copies
@shares(SearchOptions)
def kth_distance(
    points: Any,
    k: int,
    *,
    metric: str | Callable[..., Any] = "euclidean",
    symmetric: bool = False,
    **shared: Unpack[SearchOptions],
) -> Any:
    """Find the distance of every point to its k-th nearest other point, exactly.

    The values equal the last column of ``knn_graph(points, k).distances``, but no lists are stored: even for a k in the
    tens of thousands, memory holds a few blocks of rows, not n k numbers. In HDBSCAN these are the core distances for
    ``min_samples=k + 1``, where a point counts itself (Campello, Moulavi and Sander, Density-based clustering based on
    hierarchical density estimates, PAKDD 2013, definition 5).

    Parameters
    ----------
    points : array of shape (n, d)
        Or sparse rows, as for :func:`search`.
    k : int
        Which neighbour, 1 to n - 1. A point is not its own neighbour: its row number is excluded.
    symmetric : bool
        For a metric that is a function: compute each distance once, as for :func:`knn_graph`.
    progress : None, bool or callable(done, total)
        Counts rows.

    Returns
    -------
    array of shape (n,)
        The k-th distance of each point, in the order of the points; for "inner_product" the k-th largest similarity.
        The dtype is that of distances in :func:`search`. The array belongs to the library of the points and is on
        their device.

    Raises
    ------
    TypeError, ValueError
        As for :func:`knn_graph`.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> tonari.kth_distance(line, k=2)
    array([3., 2., 3.], dtype=float32)
    """
    change = change_for(metric, **columns_of(shared))
    options = Options.of(metric if change is None else change.base, shared)
    if are_sparse(points):
        if change is None:
            return sparse_kth(points, k, options)
        return change.values(sparse_kth(changed_rows(change, points, "points"), k, options))
    call = Call.of({"points": points}, options)
    rows = call.rows(points if change is None else change.rows(points, "points", call.threads), "points")
    n = len(rows)
    k = inputs.check_k(k, n - 1, without_self=True)
    size = max(1, tuning.KTH_HELD // (k + 1))
    counted = call.progress if callable(call.progress) else None
    shown = call if counted is None else dataclasses.replace(call, progress=False)
    if size >= n:
        plain = change is None and options.threads is options.memory is None
        out = _last(build_lists(rows, k, shown, finish=_last if plain else None))
        if counted is not None:
            counted(n, n)
    else:
        with Progress(call.progress, total=n, seconds=None, label="k-th neighbours", unit="row") as bar:
            out = _in_blocks(rows, k, size, shown, bar)
    out = out if change is None else change.values(out)
    return inputs.hand_back(out, inputs.side_of(points, "points"))


def _last(lists: Lists) -> Any:
    out = lists.found.distances[:, -1]
    return out.copy() if isinstance(out, np.ndarray) else out.clone()


def _in_blocks(rows: Any, k: int, size: int, call: Call, bar: Progress) -> Any:
    """Return the k-th distance of every row: the rows are prepared as points once, then searched block by block."""
    n, those, out = len(rows), Points(rows, call), None
    # planned before the points are prepared, so that BudgetExceeded includes the memory of the prepared points
    made = those.decided(rows[:size], k + 1, False)
    prepared = made.method.prepare(rows, made.plan, call.progress) if made.prepared is None else made.prepared
    for begin in range(0, n, size):
        part = slice(begin, min(begin + size, n))
        plan = made.plan
        if part.stop - part.start < size:
            plan = made.method.plan(those.problem(rows[part], k + 1), prepared_by=made.plan)
        by = made._replace(plan=plan, prepared=prepared)
        values = _kth(answer(rows[part], rows, by, call.metric, False), part, k)
        if out is None:
            out = np.empty(n, values.dtype) if isinstance(values, np.ndarray) else values.new_empty(n)
        out[part] = values
        bar.add(part.stop - part.start)
    return out


def _kth(found: Neighbors, part: slice, k: int) -> Any:
    """Return the distance of each row in a block to its k-th nearest other point."""
    distances, indices = found
    own = np.arange(part.start, part.stop)[:, None]
    before = indices[:, :k] == (own if isinstance(indices, np.ndarray) else indices.new_tensor(own))
    values = distances[:, k - 1].copy() if isinstance(distances, np.ndarray) else distances[:, k - 1].clone()
    counted = before.any(1)
    values[counted] = distances[counted, k]
    return values
