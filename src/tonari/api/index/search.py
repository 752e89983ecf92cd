"""The k-NN searches of `tonari.Index`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tonari import inputs
from tonari.api.index.base import IndexBase, kept_of, refuse_streams
from tonari.api.index.segments.segment import SegmentPoints
from tonari.api.index.segments.state import State
from tonari.core.process.compiling import not_compiled
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors, no_neighbors
from tonari.filters.arguments import Given
from tonari.methods import repeated
from tonari.methods.answer import checked, on_side_of
from tonari.methods.options import IndexOptions, shares
from tonari.methods.repeated import repeating_method
from tonari.streams.searching import search_chunks

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SearchIndex(IndexBase):
    """The k-NN searches of :class:`tonari.Index`."""

    @repeating_method(kept_of)
    @in_default_floats
    @shares(IndexOptions)
    def search(
        self,
        queries: Any,
        k: int,
        **shared: Unpack[IndexOptions],
    ) -> Neighbors:
        """Find the k nearest points of every query; see :func:`search`. Results contain the ids of points.

        Queries in host memory are copied to the device of the points, and their results are copied back. `where`,
        `exclude` and `point_groups` refer to ids: `where` and `point_groups` have :attr:`next_id` entries, one for each
        id assigned so far, and the entries of removed points are ignored; `exclude` lists ids.
        """
        progress, threads = inputs.check_progress(shared.get("progress")), inputs.check_threads(shared.get("threads"))
        now = self._state
        for one in now.unchanged:
            one.check(queries)
        filters = Given.of(shared)
        only = None if filters else now.only
        as_given = self._change is None and threads is None
        inputs.warn_of_dropped({"queries": queries}, "use tonari.search with differentiable=True")
        if only is not None and as_given:
            again = only.replayed(queries, k, progress)
            if again is not None:
                return again
        rows = self._rows(now, queries, threads)
        if only is not None and len(rows):
            those = only.those(threads)
            found = (those.searched if as_given else those.nearest)(rows, k, progress)
            if isinstance(now, State) and not those.call.place.devices:
                self._keep_search(now, those, rows, k, progress)
            return on_side_of(queries, self._finished(found))
        k = inputs.check_k(k, now.n, without_self=False)
        rules = self._rules(now, len(rows), filters)
        if not filters:
            self._check_method(now, k)
        if len(rows):
            found = now.nearest(rows, k, rules, self._asks(threads, progress))
        else:
            found = no_neighbors(k, now.next_id, self._value_dtype(rows))
        return on_side_of(queries, self._finished(found))

    def _keep_search(self, now: State, those: SegmentPoints, queries: Any, k: Any, progress: ProgressLike) -> None:
        """Cache functions that repeat a search of a state with a single segment."""
        call, points, metric = those.call, those.rows, self._metric
        if type(k) is not int:
            return
        decision = those.decided(queries, k, progress)

        def run(queries: Any) -> Neighbors:
            rows = call.place.rows(queries, "queries", metric, call.threads)
            return checked(decision.search(rows, points, progress), rows, points, metric)

        self._keep(now, decision, queries, repeated.quick_search(call, decision, queries, points), run)

    @not_compiled
    @inputs.without_gradients("use tonari.search with differentiable=True")
    def search_chunks(
        self,
        queries: Any,
        k: int,
        *,
        rows: int | None = None,
        chunk_rows: int | None = None,
        progress: ProgressLike = None,
    ) -> Iterator[Neighbors]:
        """Find the k nearest points of a stream of queries, chunk by chunk.

        Reading, searching and the caller's work overlap: while the caller uses the answer to one chunk, one thread
        searches the next chunk, and another reads the chunk after that. :func:`tonari.search_to_file` writes the
        answers to a file.

        Parameters
        ----------
        queries : iterable of arrays of shape (any, d), array of shape (m, d), or path
            Queries as for :meth:`search`, in chunks. An iterable is read on a thread of its own; its chunks may have
            any number of rows, including 0, and may reuse one buffer. An array, a memory map or a file (as
            :func:`tonari.io.read` opens it) is cut into chunks.
        k : int
            Neighbours per query, 1 to the number of points.
        rows : int, optional
            The number of queries in an iterable, from which the progress bar computes the remaining time.
        chunk_rows : int, optional
            Rows per chunk of an array or file. Default: 128 MiB of queries and results, or fewer if these would take
            more than about ten seconds.
        progress : None, bool or callable(done, total)
            Counts queries; `total` is 0 if it is unknown. None shows a bar on a terminal if the work takes more than
            two seconds.

        Yields
        ------
        Neighbors(distances, indices)
            One result for each chunk, in order, of shape (rows of the chunk, k), in the library and on the device of
            the chunk. Together they have the bits of one :meth:`search` of all queries.

        Raises
        ------
        TypeError, ValueError
            As for :meth:`search`, raised after the answers to all earlier chunks; messages number rows from the
            beginning of the stream. Exceptions of an iterable are passed on.

        Notes
        -----
        At most two chunks of queries and two of results are in memory. Leaving the loop early ends the threads.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> index = tonari.Index(np.array([[0.0], [1.0], [3.0]], dtype=np.float32))
        >>> chunks = (np.full((rows, 1), 2.8, np.float32) for rows in (2, 1))
        >>> [found.indices.tolist() for found in index.search_chunks(chunks, k=1)]
        [[[2], [2]], [[2]]]
        """
        progress = inputs.check_progress(progress)
        refuse_streams(self._state, "search")
        return search_chunks(self._frozen(), queries, k, rows=rows, chunk_rows=chunk_rows, progress=progress)
