"""The verbs of radii: `tonari.radius_search`, `tonari.radius_count` and `tonari.radius_graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from tonari import inputs
from tonari.api.changed import on_changed_rows
from tonari.api.differentiable import carries
from tonari.api.filtered import radius_allowed
from tonari.core.floats import in_default_floats
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import is_filtered, rules_of, shared_mask
from tonari.filters.counting import count_allowed
from tonari.filters.engine import Engine
from tonari.filters.rules import Rules
from tonari.filters.within import within_allowed
from tonari.methods.answer import answer, decide
from tonari.methods.no_queries import none_counted, none_within_radius, refuse_unsupported
from tonari.methods.place import Place, problem_of
from tonari.methods.radius import count_within, decide_within, find_within, is_searched, search_within
from tonari.methods.registry import check_search_method
from tonari.methods.where import place_for
from tonari.metrics import get_metric
from tonari.metrics.radius import limits_of


class Asked(NamedTuple):
    """A call, checked.

    Attributes
    ----------
    place : Place
    queries, points : checked rows
    limits : array of shape (m,)
        See :func:`tonari.core.radius_neighbors.limits_for`.
    metric, method : str
    given : dict
        Threads and memory.
    progress : None, bool or callable(done, total)
    """

    place: Place
    queries: Any
    points: Any
    limits: npt.NDArray[Any]
    metric: str
    method: str
    given: dict[str, Any]
    progress: ProgressLike

    def problem(self, k: int = 1) -> Any:
        """The problem of a search for the k nearest."""
        return problem_of(self.place, self.points, self.queries, k, self.metric, **self.given)

    def engine(self) -> Engine:
        """Searches of the points, or of some of them, without rules."""
        problem = self.problem()
        refuse_unsupported(problem, self.method)
        held: dict[str, Any] = {"threads": problem.threads, "memory": problem.memory}
        return Engine(points=self.points, place=self.place, metric=self.metric, method=self.method, **held)

    def decide(self) -> Any:
        """Who answers, with the points prepared."""
        return decide_within(
            self.problem(), self.points, self.queries, self.limits, self.method, progress=self.progress
        )


def ask(
    queries: Any,
    points: Any,
    within: dict[str, Any],
    *,
    metric: str,
    method: str,
    device: str | Sequence[str],
    progress: ProgressLike,
    **given: Any,
) -> Asked:
    """Check a call."""
    check_search_method(method)
    metric = get_metric(metric).name
    progress = inputs.check_progress(progress)
    place = place_for(device, queries=queries, points=points)
    threads = given.get("threads")
    base = place.rows(points, "points", metric, threads)
    rows = base if queries is points else place.rows(queries, "queries", metric, threads)
    inputs.same_width(rows, base)
    value = problem_of(place, base, rows, 1, metric, **given).value_dtype
    limits = limits_of(metric, len(rows), value, **within)
    return Asked(place, rows, base, limits, metric, method, given, progress)


def hand_back(found: RadiusNeighbors, like: Any, name: str) -> RadiusNeighbors:
    """Return arrays in the kind and place of the caller's."""
    side = inputs.side_of(like, name)
    return RadiusNeighbors(*(inputs.hand_back(part, side) for part in found))


@in_default_floats
@on_changed_rows
def radius_search(
    queries: Any,
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    max_neighbors: int | None = None,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    differentiable: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all points within a radius of every query, exactly.

    Parameters that are not listed are those of :func:`search`.

    Parameters
    ----------
    radius : float or array of shape (m,)
        At least 0, and possibly infinite: one for all queries, or one for each. A point is within it if its returned
        distance is at most the radius. For "sqeuclidean" the radius is squared, as distances are.
    min_similarity : float or array of shape (m,)
        Instead of a radius, for similarities. "inner_product" needs it, and finds a point whose inner product is at
        least this. "cosine" and "correlation" find one whose distance is at most ``1 - min_similarity``, a difference
        in float64.
    closed : bool
        Whether a distance equal to the radius is within it.
    max_neighbors : int, optional
        At most so many for each query: the nearest of those within the radius.
    where, exclude, query_groups, point_groups, groups
        What may be found, as for :func:`search`.
    differentiable : bool
        Let gradients flow from the distances, as for :func:`search`.
    memory : int or str, optional
        As for :func:`search`, beside the result, whose size nobody knows before: :func:`radius_count` tells it, and
        :meth:`Index.radius_chunks` has the result of a part of the queries at a time.

    Returns
    -------
    RadiusNeighbors(indptr, indices, distances)
        The neighbours of query i are at ``indptr[i]`` to ``indptr[i + 1]`` of the other two, ordered by (returned
        distance, index). As and where the queries are; dtypes as for :func:`search`.

    Raises
    ------
    TypeError, ValueError
        What :func:`search` refuses; a radius that is negative or NaN, of another shape, or that the metric does not
        have; a least similarity that is not finite.

    Notes
    -----
    Whether a point is inside is decided by the distance as it is returned, so the result is what filtering all
    distances would give, bit for bit, for every method, number of threads and device (docs/exactness.md).

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> found = tonari.radius_search(points[:2], points, radius=5.0)
    >>> found.indptr.tolist(), found.indices.tolist()
    ([0, 2, 5], [0, 1, 1, 0, 2])
    """
    within = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
    options: dict[str, Any] = {"metric": metric, "method": method, "device": device, "progress": progress}
    asked = ask(queries, points, within, threads=threads, memory=memory, **options)
    carry = carries(differentiable, queries, points, asked.metric)
    rules = {"where": where, "exclude": exclude, "groups": groups}
    rules |= {"query_groups": query_groups, "point_groups": point_groups}
    return carry(hand_back(_found(asked, max_neighbors, rules, self_join=False), queries, "queries"))


@in_default_floats
@on_changed_rows
def radius_count(
    queries: Any,
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    exclude: Any = None,
    query_groups: Any = None,
    point_groups: Any = None,
    groups: str | None = None,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> Any:
    """Count the points within a radius of every query, exactly.

    Most counted points never get an exact distance: a bound proves that they are inside.

    Parameters
    ----------
    radius, min_similarity, closed
        As for :func:`radius_search`, as is what says which points may be found; all others as for :func:`search`.

    Returns
    -------
    int64 array of shape (m,)
        As and where the queries are.

    Raises
    ------
    TypeError, ValueError
        What :func:`radius_search` refuses. Values that overflow or underflow are refused where the count depends on
        them: for a radius that is infinite, or too small for its dtype.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype=np.float32)
    >>> tonari.radius_count(points, points, radius=5.0).tolist()
    [2, 3, 2]
    """
    within = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
    options: dict[str, Any] = {"metric": metric, "method": method, "device": device, "progress": progress}
    asked = ask(queries, points, within, threads=threads, memory=memory, **options)
    rules = {"where": where, "exclude": exclude, "groups": groups}
    rules |= {"query_groups": query_groups, "point_groups": point_groups}
    made = rules_of(len(asked.queries), len(asked.points), **rules) if is_filtered(**rules) else None
    if not len(asked.queries):
        return inputs.hand_back(none_counted(asked.problem(), asked.method), inputs.side_of(queries, "queries"))
    if made is not None:
        counts = count_allowed(asked.engine(), asked.queries, asked.limits, made, asked.progress)
        return inputs.hand_back(counts, inputs.side_of(queries, "queries"))
    decision = asked.decide()
    counts = count_within(asked.queries, asked.points, decision, asked.limits, progress=asked.progress)
    return inputs.hand_back(counts, inputs.side_of(queries, "queries"))


@in_default_floats
@on_changed_rows
def radius_graph(
    points: Any,
    radius: Any = None,
    *,
    min_similarity: Any = None,
    closed: bool = True,
    max_neighbors: int | None = None,
    metric: str = "euclidean",
    weights: Any = None,
    method: str = "auto",
    where: Any = None,
    batch: Any = None,
    differentiable: bool = False,
    device: str | Sequence[str] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: ProgressLike = None,
) -> RadiusNeighbors:
    """Find all other points within a radius of every point, exactly.

    Parameters
    ----------
    points : array of shape (n, d)
    radius, min_similarity, closed, max_neighbors
        As for :func:`radius_search`; all others as for :func:`search`.
    where, batch
        Which points may be found, and groups in which points find each other alone, as for :func:`knn_graph`.
    differentiable : bool
        Let gradients flow from the distances to both of their points, as for :func:`search`.

    Returns
    -------
    RadiusNeighbors(indptr, indices, distances)
        As that of :func:`radius_search`, with a row for each point. A point is not its own neighbour: it is excluded by
        row identity, so its duplicates are found.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> line = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    >>> graph = tonari.radius_graph(line, radius=2.0)
    >>> graph.indptr.tolist(), graph.indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    within = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
    options: dict[str, Any] = {"metric": metric, "method": method, "device": device, "progress": progress}
    asked = ask(points, points, within, threads=threads, memory=memory, **options)
    carry = carries(differentiable, points, points, asked.metric)
    rules = {"where": where, "batch": batch}
    shared_mask(where, len(asked.points))
    return carry(hand_back(_found(asked, max_neighbors, rules, self_join=True), points, "points"))


def _found(asked: Asked, most: Any, rules: dict[str, Any], *, self_join: bool) -> RadiusNeighbors:
    most = None if most is None else inputs.check_count(most, "max_neighbors")
    filtered = is_filtered(**rules)
    made = rules_of(len(asked.queries), len(asked.points), own=self_join, **rules) if filtered else None
    if not len(asked.queries):
        return none_within_radius(asked.problem(), asked.method)
    if made is not None:
        return radius_allowed(asked.engine(), asked.queries, asked.limits, made, most, asked.progress)
    others = len(asked.points) - self_join
    if is_searched(most) and others:
        problem = asked.problem(min(most, others))
        decision = decide(asked.place, problem, asked.points, asked.queries, asked.method, None, asked.progress)
        search = answer(asked.queries, asked.points, decision, asked.progress, self_join=self_join)
        return search_within(search, asked.limits, asked.metric)
    if most is not None:
        anyone = Rules(m=len(asked.queries), n=len(asked.points), own=self_join)
        return within_allowed(asked.engine(), asked.queries, asked.limits, anyone, most, asked.progress)
    decision = asked.decide()
    return find_within(
        asked.queries, asked.points, decision, asked.limits, self_join=self_join, progress=asked.progress
    )
