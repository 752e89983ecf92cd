"""The radius searches of `tonari.Index`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.api.index.base import IndexBase, kept_of, refuse_streams
from tonari.api.index.segments.sparse_state import SparseState
from tonari.api.index.segments.state import State
from tonari.core.process.compiling import not_compiled
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.core.results.radius_neighbors import RadiusNeighbors, Within, none_within
from tonari.filters.arguments import Given
from tonari.methods import repeated
from tonari.methods.answer import on_side_of
from tonari.methods.options import IndexOptions, shares
from tonari.methods.places.points import DecidedPoints
from tonari.methods.registry import by_force
from tonari.methods.repeated import repeating_method
from tonari.metrics.radius import limits_of
from tonari.streams.searching import radius_chunks

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RadiusIndex(IndexBase):
    """The radius searches of :class:`tonari.Index`."""

    @repeating_method(kept_of)
    @in_default_floats
    @shares(IndexOptions)
    def radius_search(
        self,
        queries: Any,
        radius: Any = None,
        *,
        min_similarity: Any = None,
        closed: bool = True,
        max_neighbors: int | None = None,
        **shared: Unpack[IndexOptions],
    ) -> RadiusNeighbors:
        """Find all points within a radius of every query; see :func:`tonari.radius_search`.

        `where`, `exclude` and `point_groups` refer to ids, as in :meth:`search`.
        """
        within = {"radius": radius, "similarity": min_similarity, "closed": closed}
        most = None if max_neighbors is None else inputs.check_count(max_neighbors, "max_neighbors")
        if self._memory is None:
            return self._found(queries, within, most, shared)
        with self._after_copies_of_queries(queries) as taken:
            return self._found(queries, within, most, shared, taken)

    def _found(
        self,
        queries: Any,
        within: dict[str, Any],
        most: int | None,
        shared: IndexOptions,
        taken: int = 0,
    ) -> RadiusNeighbors:
        """Search; see :meth:`radius_search`. Copies of the queries take `taken` bytes of the memory."""
        progress = inputs.check_progress(shared.get("progress"))
        inputs.warn_of_dropped({"queries": queries}, "use tonari.radius_search with differentiable=True")
        now, threads = self._state, inputs.check_threads(shared.get("threads"))
        rows, limits = self._checked(now, queries, threads=threads, **within)
        rules = self._rules(now, len(rows), Given.of(shared))
        if len(rows) and rules is None and most is None and now.only is not None:
            those = now.only.those(threads, taken=taken).decided_within(rows, limits, progress)
            found = those.within(rows, limits, progress)
            self._keep_quick(now, those, rows, limits, repeated.quick_within)
        elif len(rows):
            found = now.within(rows, limits, rules, most, self._asks(threads, progress), taken)
        else:
            found = none_within(now.next_id, limits.dtype)
        return on_side_of(queries, self._finished(found))

    @repeating_method(kept_of)
    @in_default_floats
    @shares(IndexOptions)
    def radius_count(
        self,
        queries: Any,
        radius: Any = None,
        *,
        min_similarity: Any = None,
        closed: bool = True,
        **shared: Unpack[IndexOptions],
    ) -> Any:
        """Count the points within a radius of every query; see :func:`tonari.radius_count`.

        `where`, `exclude` and `point_groups` refer to ids, as in :meth:`search`.
        """
        within = {"radius": radius, "similarity": min_similarity, "closed": closed}
        if self._memory is None:
            return self._counted(queries, within, shared)
        with self._after_copies_of_queries(queries) as taken:
            return self._counted(queries, within, shared, taken)

    def _counted(self, queries: Any, within: dict[str, Any], shared: IndexOptions, taken: int = 0) -> Any:
        """Count; see :meth:`radius_count`. Copies of the queries take `taken` bytes of the memory."""
        progress = inputs.check_progress(shared.get("progress"))
        now, threads = self._state, inputs.check_threads(shared.get("threads"))
        rows, limits = self._checked(now, queries, threads=threads, **within)
        rules = self._rules(now, len(rows), Given.of(shared))
        if isinstance(now, SparseState):
            counts = now.count(rows, limits, rules, self._asks(threads, progress), taken)
        elif len(rows) and rules is None and now.only is not None:
            those = now.only.those(threads, taken=taken).decided_within(rows, limits, progress)
            counts = those.count(rows, limits, progress)
            self._keep_quick(now, those, rows, limits, repeated.quick_count)
        elif len(rows):
            counts = now.count(rows, limits, rules, self._asks(threads, progress), self._brute, taken)
        else:
            counts = np.zeros(0, np.int64)
        return inputs.hand_back(counts, inputs.side_of(queries, "queries"))

    @not_compiled
    @inputs.without_gradients("use tonari.radius_search with differentiable=True")
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
        """Find all points within a radius of a stream of queries, chunk by chunk.

        Parameters
        ----------
        queries, rows, progress
            As for :meth:`search_chunks`.
        radius, min_similarity : float
            One number for all queries, as for :func:`tonari.radius_search`.
        closed : bool
            Whether a distance equal to the radius is within it.
        max_neighbors : int, optional
            Return at most this number of points for each query: the nearest ones within the radius.
        chunk_rows : int, optional
            Rows per chunk of an array or file. Default: the number of rows with 8 million expected neighbours, or with
            ten expected seconds if that is less.

        Yields
        ------
        RadiusNeighbors(indptr, indices, distances)
            One result for each chunk, in order, in the library and on the device of the chunk. Together they have the
            bits of one :meth:`radius_search` of all queries.

        Raises
        ------
        TypeError, ValueError
            As for :meth:`radius_search`. Messages number rows from the beginning of the stream.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> index = tonari.Index(np.array([[0.0], [1.0], [3.0]], dtype=np.float32))
        >>> chunks = (np.full((rows, 1), 0.8, np.float32) for rows in (2, 1))
        >>> [found.indices.tolist() for found in index.radius_chunks(chunks, radius=1.0)]
        [[1, 0, 1, 0], [1, 0]]
        """
        progress = inputs.check_progress(progress)
        refuse_streams(self._state, "radius_search")
        index = self._frozen()
        value = "float64" if self.dtype == "float64" else "float32"
        within: dict[str, Any] = {"radius": radius, "min_similarity": min_similarity, "closed": closed}
        limits_of(self._metric, 1, value, **within)  # refuses an invalid radius here, not on the thread that searches

        def find(part: Any, counted: ProgressLike) -> RadiusNeighbors:
            found: RadiusNeighbors = index.radius_search(part, **within, max_neighbors=max_neighbors, progress=counted)
            return found

        return radius_chunks(index, queries, find, rows=rows, chunk_rows=chunk_rows, progress=progress)

    def _keep_quick(self, now: State, those: DecidedPoints, queries: Any, limits: Any, quick_of: Any) -> None:
        """Cache a function that repeats a search of a single segment, if the CPU answers it in microseconds."""
        if not those.call.place.devices:
            quick = quick_of(those.call, those.decision, Within(queries, limits), those.rows)
            if quick is not None:
                self._keep(now, those.decision, queries, quick)

    def _brute(self, rows: Any, taken: int) -> Any:
        """Prepare the removed points as a segment, so that their count can be subtracted."""
        return self._segment(rows, taken, by_force(self._base))
