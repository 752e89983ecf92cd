"""Searches within a radius: `tonari.radius_search`, `tonari.radius_count` and `tonari.radius_graph`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.api.sparse.answers import (
    are_sparse,
    refuse_for_sparse,
    sparse_count,
    sparse_radius,
    sparse_radius_graph,
)
from tonari.api.sparse.mixed import in_one_layout
from tonari.api.user_metrics.answers import count_given, radius_given, radius_graph_given
from tonari.api.user_metrics.call import on_given_values
from tonari.api.within_call import Verb, WithinCall
from tonari.api.wrappers.changed import on_changed_rows
from tonari.api.wrappers.copies import counting_copies
from tonari.api.wrappers.differentiable import carries
from tonari.core.process.floats import in_default_floats
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import Given, shared_mask
from tonari.methods import repeated
from tonari.methods.answer import on_side_of
from tonari.methods.call import Call, Radius
from tonari.methods.options import FilteredOptions, Options, SearchOptions, shares

if TYPE_CHECKING:
    from typing_extensions import Unpack

_SEARCH = Verb(lambda points, rows, limits: points.within(rows, limits, points.call.progress))
_COUNT = Verb(lambda points, rows, limits: points.count(rows, limits, points.call.progress), counts=True)
_JOIN = Verb(lambda points, rows, limits: points.within(rows, limits, points.call.progress, self_join=True), own=True)


@repeated.repeating
@in_default_floats
@on_given_values(radius_given)
@counting_copies
@on_changed_rows
@in_one_layout
@shares(FilteredOptions)
def radius_search(
    queries: Any,
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    max_neighbors: int | None = None,
    metric: str | Callable[..., Any] = "euclidean",
    differentiable: bool = False,
    **shared: Unpack[FilteredOptions],
) -> RadiusNeighbors:
    """Find all points within a radius of every query, exactly.

    Parameters
    ----------
    queries, points : arrays of shape (m, d) and (n, d)
        As for :func:`search`, or sparse rows.
    radius : float or array of shape (m,)
        One radius for all queries, or one for each: at least 0, possibly infinite. A point is within the radius if its
        returned distance is at most the radius. For "sqeuclidean" the radius is compared with squared distances.
    min_similarity : float or array of shape (m,)
        The smallest similarity, instead of a radius. "inner_product" requires it: a point is found if its inner product
        is at least this number. For "cosine" and "correlation" it means the radius ``1 - min_similarity``, computed in
        float64.
    closed : bool
        Whether a distance equal to the radius (a similarity equal to `min_similarity`) is within it. Default: True.
    max_neighbors : int, optional
        Return at most this number of points for each query: the nearest ones within the radius.
    where, exclude, query_groups, point_groups, groups, exclude_within
        Which points may be found, as for :func:`search`.
    differentiable : bool
        Let gradients flow from the distances, as for :func:`search`.
    memory : int or str, optional
        As for :func:`search`. It does not include the result, whose size is unknown before the search.
        :func:`radius_count` returns the size; :meth:`Index.radius_chunks` returns the result for one chunk of queries
        after another.

    Returns
    -------
    RadiusNeighbors(indptr, indices, distances)
        ``indptr`` is int64 of shape (m + 1,). The neighbours of query i are ``indices[indptr[i]:indptr[i + 1]]``,
        ordered by (returned distance, index), and their distances are ``distances[indptr[i]:indptr[i + 1]]``, with the
        dtypes of :func:`search`. The arrays belong to the library of the queries and are on their device.

    Raises
    ------
    TypeError, ValueError
        As for :func:`search`; also for a radius that is negative, NaN or of another shape, a radius for a metric that
        needs `min_similarity` (or the reverse), and a `min_similarity` that is not finite. An infinite radius is
        refused if a distance overflows.

    Notes
    -----
    The returned distance decides whether a point is within the radius. The result therefore has, for every method,
    number of threads and device, the same bits as computing all distances and selecting the ones within the radius
    (docs/exactness.md).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> found = tonari.radius_search(points[:2], points, radius=5.0)
    >>> found.indptr.tolist(), found.indices.tolist()
    ([0, 2, 5], [0, 1, 1, 0, 2])
    """
    options, limit = Options.of(metric, shared), Radius(radius, min_similarity, closed)
    given = Given.of(shared)
    if are_sparse(queries, points):
        refuse_for_sparse(differentiable=differentiable)
        return sparse_radius(queries, points, limit, given, options, max_neighbors=max_neighbors)
    plain = not given and max_neighbors is options.threads is options.memory is None and differentiable is False
    call = Call.of({"queries": queries, "points": points}, options)
    within = WithinCall.of(call, queries, points, limit)
    within = within.decided(_SEARCH if plain else None)
    carry = carries(differentiable, queries, points, call.metric.name)
    return carry(on_side_of(queries, within.found(given, max_neighbors)))


@repeated.repeating
@in_default_floats
@on_given_values(count_given)
@counting_copies
@on_changed_rows
@in_one_layout
@shares(FilteredOptions)
def radius_count(
    queries: Any,
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    metric: str | Callable[..., Any] = "euclidean",
    **shared: Unpack[FilteredOptions],
) -> Any:
    """Count the points within a radius of every query, exactly.

    For most counted points a bound proves that they are within the radius, and no exact distance is computed.

    Parameters
    ----------
    queries, points : arrays of shape (m, d) and (n, d)
        As for :func:`search`, or sparse rows.
    radius, min_similarity, closed
        As for :func:`radius_search`.
    where, exclude, query_groups, point_groups, groups, exclude_within
        Which points are counted, as for :func:`search`.

    Returns
    -------
    int64 array of shape (m,)
        The count of each query, in the library and on the device of the queries.

    Raises
    ------
    TypeError, ValueError
        As for :func:`radius_search`. Distances that overflow or underflow are refused only if the count depends on
        them: if the radius is infinite, or smaller than the smallest normal number of the distances' dtype.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> tonari.radius_count(points, points, radius=5.0).tolist()
    [2, 3, 2]
    """
    options, limit = Options.of(metric, shared), Radius(radius, min_similarity, closed)
    given = Given.of(shared)
    if are_sparse(queries, points):
        return sparse_count(queries, points, limit, given, options)
    call = Call.of({"queries": queries, "points": points}, options)
    within = WithinCall.of(call, queries, points, limit)
    within = within.decided(_COUNT if not given and options.threads is options.memory is None else None)
    counts = within.counted(given)
    return inputs.hand_back(counts, inputs.side_of(queries, "queries"))


@repeated.repeating
@in_default_floats
@on_given_values(radius_graph_given)
@counting_copies
@on_changed_rows
@shares(SearchOptions)
def radius_graph(
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    max_neighbors: int | None = None,
    metric: str | Callable[..., Any] = "euclidean",
    symmetric: bool = False,
    where: Any = None,
    batch: Any = None,
    exclude_within: int | None = None,
    differentiable: bool = False,
    **shared: Unpack[SearchOptions],
) -> RadiusNeighbors:
    """Find all other points within a radius of every point, exactly.

    Parameters
    ----------
    points : array of shape (n, d)
        Or sparse rows, as for :func:`search`.
    radius, min_similarity, closed, max_neighbors
        As for :func:`radius_search`.
    symmetric : bool
        For a metric that is a function: compute each distance once, as for :func:`knn_graph`.
    where, batch
        A mask of the points that may be found, and the group of each point, as for :func:`knn_graph`.
    exclude_within : int, optional
        Points whose row numbers differ by at most this number are not neighbours, as for :func:`knn_graph`.
    differentiable : bool
        Let gradients flow from each distance to both of its points, as for :func:`search`.

    Returns
    -------
    RadiusNeighbors(indptr, indices, distances)
        As for :func:`radius_search`, with one list for each point. A point is not its own neighbour: its row number is
        excluded, so its duplicates are found.

    Raises
    ------
    TypeError, ValueError
        As for :func:`radius_search`.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> graph = tonari.radius_graph(line, radius=2.0)
    >>> graph.indptr.tolist(), graph.indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    options, limit = Options.of(metric, shared), Radius(radius, min_similarity, closed)
    given = Given(where=where, batch=batch, exclude_within=exclude_within)
    if are_sparse(points):
        refuse_for_sparse(differentiable=differentiable)
        return sparse_radius_graph(points, limit, given, options, max_neighbors=max_neighbors)
    plain = not given and max_neighbors is options.threads is options.memory is None and differentiable is False
    call = Call.of({"points": points}, options)
    within = WithinCall.of(call, points, points, limit)
    within = within.decided(_JOIN if plain else None)
    carry = carries(differentiable, points, points, call.metric.name)
    shared_mask(where, len(within.points))
    return carry(on_side_of(points, within.found(given, max_neighbors, self_join=True), "points"))
