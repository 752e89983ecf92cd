"""What is within a radius of queries, of points that are prepared once: the part of `tonari.Index` for radii."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.api.radius import hand_back
from tonari.api.segment import Segment
from tonari.api.state import State
from tonari.core.floats import in_default_floats
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.methods.place import Place
from tonari.metrics.radius import limits_of
from tonari.streams.radius import radius_chunks


class RadiusIndex:
    """The verbs of radii of :class:`tonari.Index`, which has all else."""

    d: int
    metric: str
    _place: Place
    _state: State

    def _segment(self, rows: Any, method: str | None = None) -> Segment:
        raise NotImplementedError

    def _frozen(self) -> Any:
        """Return the Index as it is now."""
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
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> RadiusNeighbors:
        """All points within a radius of every query; see :func:`tonari.radius_search`."""
        progress = inputs.check_progress(progress)
        most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
        now, threads = self._state, inputs.check_threads(threads)
        rows, limits = self._checked(now, queries, radius, min_similarity, closed)
        if now.only is not None:
            found = now.only.within(rows, limits, most, threads, progress)
        else:
            found = now.within(rows, limits, most, threads, self.metric, progress)
        return hand_back(found, queries, "queries")

    @in_default_floats
    def radius_count(
        self,
        queries: Any,
        radius: Any = None,
        *,
        min_similarity: Any = None,
        closed: bool = True,
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> Any:
        """The number of points within a radius of every query; see :func:`tonari.radius_count`."""
        progress = inputs.check_progress(progress)
        now, threads = self._state, inputs.check_threads(threads)
        rows, limits = self._checked(now, queries, radius, min_similarity, closed)
        counts = now.count(rows, limits, threads, self._segment, progress)
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
        index = self._frozen()
        value = "float64" if inputs.name_of_dtype(self._state.sample) == "float64" else "float32"
        within: dict[str, Any] = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        limits_of(self.metric, 1, value, **within)  # refused here, not on the thread of the search

        def find(part: Any, counted: ProgressLike) -> RadiusNeighbors:
            found: RadiusNeighbors = index.radius_search(part, **within, max_neighbors=max_neighbors, progress=counted)
            return found

        return radius_chunks(index, queries, find, rows=rows, chunk_rows=chunk_rows, progress=progress)

    def _checked(
        self, now: State, queries: Any, radius: Any, similarity: Any, closed: Any
    ) -> tuple[Any, npt.NDArray[Any]]:
        """Return the queries, checked, and the limit of each."""
        rows = self._place.rows(queries, "queries", self.metric)
        inputs.same_width(rows, now.sample)
        names = inputs.name_of_dtype(rows), inputs.name_of_dtype(now.sample)
        value = "float64" if "float64" in names else "float32"
        within = {"radius": radius, "min_similarity": similarity, "closed": closed}
        return rows, limits_of(self.metric, len(rows), value, **within)
