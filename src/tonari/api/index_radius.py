"""What is within a radius of queries, of points that are prepared once: the part of `tonari.Index` for radii."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.filtered import radius_allowed
from tonari.api.radius import hand_back
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import is_filtered, rules_of
from tonari.filters.engine import Engine
from tonari.filters.nearest import nearest_allowed
from tonari.methods.answer import answer, on_side_of
from tonari.methods.decision import Decision
from tonari.methods.place import Place
from tonari.methods.radius import find_within, is_searched, search_within
from tonari.metrics.radius import limits_of
from tonari.streams.radius import radius_chunks


class RadiusIndex:
    """The verbs of radii of :class:`tonari.Index`, which has all else."""

    n: int
    d: int
    metric: str
    method: str
    _memory: int | None
    _place: Place
    _points: Any
    _threads: int | None

    @property
    def points(self) -> Any:
        """The points, checked."""
        return self._points

    def _decide_once(self, rows: Any, k: int, threads: int | None, progress: ProgressLike) -> Decision:
        raise NotImplementedError

    @in_default_floats
    def radius_search(
        self,
        queries: Any,
        radius: Any = None,
        *,
        min_similarity: Any = None,
        closed: bool = True,
        max_neighbors: int | None = None,
        where: Any = None,
        exclude: Any = None,
        query_groups: Any = None,
        point_groups: Any = None,
        groups: str | None = None,
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> RadiusNeighbors:
        """All points within a radius of every query; see :func:`tonari.radius_search`."""
        progress = inputs.check_progress(progress)
        most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
        rows, limits = self._checked(queries, radius, min_similarity, closed)
        threads = inputs.check_threads(threads) or self._threads
        given = {"where": where, "exclude": exclude, "groups": groups}
        given |= {"query_groups": query_groups, "point_groups": point_groups}
        if is_filtered(**given):
            rules = rules_of(len(rows), self.n, **given)
            found = radius_allowed(self._engine(threads), rows, limits, rules, most, progress)
        elif is_searched(most):
            decision = self._decide_once(rows, min(most or 1, self.n), threads, progress)
            found = search_within(answer(rows, self._points, decision, progress), limits, self.metric)
        else:
            decision = self._decide_once(rows, 1, threads, progress)
            found = find_within(rows, decision, limits, most=most, progress=progress)
        return hand_back(found, queries, "queries")

    @in_default_floats
    def radius_count(
        self,
        queries: Any,
        radius: Any = None,
        *,
        min_similarity: Any = None,
        closed: bool = True,
        where: Any = None,
        exclude: Any = None,
        query_groups: Any = None,
        point_groups: Any = None,
        groups: str | None = None,
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> Any:
        """The number of points within a radius of every query; see :func:`tonari.radius_count`."""
        progress = inputs.check_progress(progress)
        rows, limits = self._checked(queries, radius, min_similarity, closed)
        threads = inputs.check_threads(threads) or self._threads
        given = {"where": where, "exclude": exclude, "groups": groups}
        given |= {"query_groups": query_groups, "point_groups": point_groups}
        if is_filtered(**given):
            rules = rules_of(len(rows), self.n, **given)
            found = radius_allowed(self._engine(threads), rows, limits, rules, None, progress)
            return inputs.hand_back(np.diff(found.indptr), inputs.side_of(queries, "queries"))
        decision = self._decide_once(rows, 1, threads, progress)
        counts = decision.method.count_within(rows, decision.prepared, decision.plan, limits, progress=progress)
        return inputs.hand_back(counts, inputs.side_of(queries, "queries"))

    def radius_chunks(
        self,
        queries: Any,
        radius: float | None = None,
        *,
        min_similarity: float | None = None,
        closed: bool = True,
        max_neighbors: int | None = None,
        rows: int | None = None,
        chunk_rows: int | None = None,
        progress: ProgressLike = None,
    ) -> Iterator[RadiusNeighbors]:
        """All points within a radius of a stream of queries, chunk by chunk.

        Parameters
        ----------
        queries, rows, progress
            As for :meth:`search_chunks`.
        radius, min_similarity : float
            One number, for :func:`tonari.radius_search`, as are `closed` and `max_neighbors`.
        chunk_rows : int, optional
            Rows per chunk of an array or file. Default: about as many as have 8 million neighbours or take ten seconds.

        Yields
        ------
        RadiusNeighbors(indptr, indices, distances)
            One for each chunk, in order, as and where the chunk is. Together they have the bits of one
            :meth:`radius_search` of all queries.

        Raises
        ------
        TypeError, ValueError
            What :meth:`radius_search` refuses; rows are numbered from the beginning of the stream.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> index = tonari.Index(np.array([[0.0], [1.0], [3.0]], dtype=np.float32))
        >>> chunks = (np.full((rows, 1), 0.8, np.float32) for rows in (2, 1))
        >>> [found.indices.tolist() for found in index.radius_chunks(chunks, radius=1.0)]
        [[1, 0, 1, 0], [1, 0]]
        """
        progress = inputs.check_progress(progress)
        value = "float64" if inputs.name_of_dtype(self._points) == "float64" else "float32"
        within: dict[str, Any] = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        limits_of(self.metric, 1, value, **within)  # refused here, not on the thread of the search

        def find(part: Any, counted: ProgressLike) -> RadiusNeighbors:
            return self.radius_search(part, **within, max_neighbors=max_neighbors, progress=counted)

        return radius_chunks(self, queries, find, rows=rows, chunk_rows=chunk_rows, progress=progress)

    def _search_allowed(
        self, queries: Any, k: int, given: dict[str, Any], threads: int | None, progress: ProgressLike
    ) -> Neighbors:
        """The k nearest points that rules allow."""
        rows = self._place.rows(queries, "queries", self.metric)
        inputs.same_width(rows, self._points)
        threads = inputs.check_threads(threads) or self._threads
        k = inputs.check_k(k, self.n, without_self=False)
        return on_side_of(
            queries, nearest_allowed(self._engine(threads), rows, k, rules_of(len(rows), self.n, **given), progress)
        )

    def _engine(self, threads: int | None) -> Engine:
        """Searches of the points, which are prepared, or of a copy of some, without rules."""

        def nearest(rows: Any, k: int, progress: ProgressLike) -> Neighbors:
            return answer(rows, self._points, self._decide_once(rows, k, threads, progress), progress)

        def within(rows: Any, limits: Any, progress: ProgressLike) -> RadiusNeighbors:
            return find_within(
                rows, self._decide_once(rows, 1, threads, progress), limits, most=None, progress=progress
            )

        options: dict[str, Any] = {"method": self.method, "threads": threads, "memory": self._memory}
        held: dict[str, Any] = {"held_nearest": nearest, "held_within": within}
        return Engine(points=self._points, place=self._place, metric=self.metric, **options, **held)

    def _checked(self, queries: Any, radius: Any, similarity: Any, closed: Any) -> tuple[Any, npt.NDArray[Any]]:
        """Return the queries, checked, and the limit of each."""
        rows = self._place.rows(queries, "queries", self.metric)
        inputs.same_width(rows, self._points)
        names = inputs.name_of_dtype(rows), inputs.name_of_dtype(self._points)
        value = "float64" if "float64" in names else "float32"
        within = {"radius": radius, "min_similarity": similarity, "closed": closed}
        return rows, limits_of(self.metric, len(rows), value, **within)
