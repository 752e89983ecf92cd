"""`tonari.mutual_neighbors`: pairs of points of two sets that are among the nearest of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.api.searching import search
from tonari.api.sparse.answers import are_sparse
from tonari.api.user_metrics.call import is_given
from tonari.api.wrappers.copies import bytes_of_copies
from tonari.core.errors import Unsupported
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.pairs import Pairs
from tonari.filters.excluded import distinct
from tonari.filters.rules import are_among
from tonari.methods.call import Call
from tonari.methods.options import Options, SearchOptions, columns_of, shares
from tonari.methods.places.points import Points
from tonari.metrics.names import PRECOMPUTED
from tonari.metrics.transforms.change import Change, change_for

if TYPE_CHECKING:
    from typing_extensions import Unpack


@in_default_floats
@inputs.without_gradients("use tonari.search in both directions with differentiable=True")
@shares(SearchOptions)
def mutual_neighbors(
    points_a: Any,
    points_b: Any,
    k: int,
    *,
    metric: str | Callable[..., Any] = "euclidean",
    **shared: Unpack[SearchOptions],
) -> Pairs:
    """Find the mutual nearest neighbours (MNN) of two sets of points, exactly.

    A point p of a and a point q of b are a pair if q is among the k points of b nearest to p, and p is among the k
    points of a nearest to q. Batch correction of single-cell data uses such pairs as anchors between batches [1]_. With
    k = 1, every point is in at most one pair, and the pairs are the matches that pass a cross-check.

    Parameters
    ----------
    points_a, points_b : arrays of shape (n_a, d) and (n_b, d)
        As the queries and points of :func:`search`, sparse rows included.
    k : int
        Neighbours per point that count, 1 to the number of points in the smaller set. If a set is empty, there are no
        pairs.
    metric : str or function
        As for :func:`search`, except "precomputed".
    progress : None, bool or callable(done, total)
        As for :func:`search`, for each of the two searches.

    Returns
    -------
    Pairs(left, right, distances)
        For each pair its row numbers in `points_a` and in `points_b`, and its distance, ordered by (left, distance,
        right). Dtypes are as for :func:`search`. The arrays belong to the library of `points_a` and are on its device.

    Raises
    ------
    TypeError, ValueError
        As for :func:`search`.

    Notes
    -----
    Ties go to the smaller row number: if several points are at the k-th distance of a point, those with the smallest
    row numbers are among its k nearest.

    References
    ----------
    .. [1] Haghverdi, Lun, Morgan and Marioni, "Batch effects in single-cell RNA-sequencing data are corrected by
       matching mutual nearest neighbors", Nature Biotechnology 36 (2018).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> a, b = np.array([[0.0], [1.0], [9.0]]), np.array([[1.25], [8.0]])
    >>> left, right, distances = tonari.mutual_neighbors(a, b, k=1)
    >>> left.tolist(), right.tolist(), distances.tolist()
    ([1, 2], [0, 1], [0.25, 1.0])
    """
    if isinstance(metric, str) and metric.lower() == PRECOMPUTED:
        raise Unsupported(
            "metric='precomputed': pass the points, or search the distances and their transpose by "
            "tonari.search(distances, None, k, metric='precomputed')"
        )
    columns, options = columns_of(shared), Options.of(metric, shared)
    empty = [np.ndim(points) == 2 and np.shape(points)[0] == 0 for points in (points_a, points_b)]
    if any(empty):
        ways = (points_b, points_a) if empty[1] else (points_a, points_b)  # only the array of queries may be empty
        if all(empty):
            inputs.check_count(k, "k")
            ways, k = (points_a, _one_row(points_b)), 1
        none = search(ways[0], ways[1], k, **columns, **options._asdict())
        there = back = Neighbors(*(part[:0, :0] for part in none))
    elif are_sparse(points_a, points_b) or is_given(metric):
        there = search(points_a, points_b, k, **columns, **options._asdict())
        back = search(points_b, points_a, k, **columns, **options._asdict())
    else:
        there, back = _both_ways(points_a, points_b, k, change_for(metric, **columns), options)
    (values, to_b), (_, to_a) = ([np.asarray(inputs.to_host(part)) for part in found] for found in (there, back))
    m, n = len(to_b), len(to_a)
    of_a = (np.arange(m)[:, None] * n + to_b).ravel()
    listed = (np.arange(n)[:, None] + to_a.astype(np.int64) * n)[to_a >= 0]
    mutual = are_among(of_a, distinct(listed.ravel(), in_place=True)) & (to_b.ravel() >= 0)
    left = np.repeat(np.arange(m, dtype=to_a.dtype), to_b.shape[1])[mutual]
    side = inputs.side_of(points_a, "points_a")
    return Pairs(*(inputs.hand_back(part, side) for part in (left, to_b.ravel()[mutual], values.ravel()[mutual])))


def _one_row(points: Any) -> Any:
    """Return one row of ones, with the width, dtype and library of an array without rows."""
    width = np.shape(points)[1]
    if inputs.kind_of(points) == "torch":
        return points.new_ones((1, width))
    row = np.ones((1, width), points.dtype if hasattr(points, "dtype") else np.asarray(points).dtype)
    return type(points)(row) if are_sparse(points) else inputs.hand_back(row, inputs.side_of(points, "points_b"))


def _both_ways(
    points_a: Any, points_b: Any, k: Any, change: Change | None, options: Options
) -> tuple[Neighbors, Neighbors]:
    """Find the k nearest points in the other set for every point of each set."""
    arrays, memory, copied = {"points_a": points_a, "points_b": points_b}, inputs.parse_memory(options.memory), 0
    if memory is not None:
        copied = bytes_of_copies(arrays, options.metric, change, options.device)
    with inputs.after_copies(copied, memory) as left:
        return _searched(arrays, k, change, options._replace(memory=left))


def _searched(arrays: dict[str, Any], k: int, change: Change | None, options: Options) -> tuple[Neighbors, Neighbors]:
    """Search in both directions, with the memory that copies of the rows leave."""
    points_a, points_b = arrays.values()
    call = Call.of(arrays, options if change is None else options._replace(metric=change.base))
    if change is not None:
        arrays = {name: change.rows(points, name, call.threads) for name, points in arrays.items()}
    a, b = (call.rows(points, name) for name, points in arrays.items())
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"points_a has {a.shape[1]} columns, points_b {b.shape[1]}: they must have the same number")
    if call.metric.bits:
        inputs.same_bits(inputs.bool_columns(points_a), inputs.bool_columns(points_b))
    k = inputs.check_k(k, min(len(a), len(b)), without_self=False)
    found = Points(b, call).nearest(a, k, call.progress), Points(a, call).nearest(b, k, call.progress)
    if change is None:
        return found
    there, back = (Neighbors(change.values(near.distances), near.indices) for near in found)
    return there, back
