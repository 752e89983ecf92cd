"""The k nearest points of queries, of points that are prepared once: the part of `tonari.Index` for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tonari import inputs
from tonari.api.index_base import IndexBase
from tonari.core.compiling import not_compiled
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors, no_neighbors
from tonari.core.progress import ProgressLike
from tonari.filters.arguments import Given
from tonari.methods.answer import on_side_of
from tonari.streams.searching import search_chunks


class SearchIndex(IndexBase):
    """The searches of :class:`tonari.Index`."""

    @in_default_floats
    def search(
        self,
        queries: Any,
        k: int,
        *,
        where: Any = None,
        exclude: Any = None,
        query_groups: Any = None,
        point_groups: Any = None,
        groups: str | None = None,
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> Neighbors:
        """The k nearest points of every query; see :func:`search`. Results name the ids of points.

        Queries in host memory are copied to the device that the points are on, and their results come back. What
        `where`, `exclude` and `point_groups` say of points, they say of ids: a mask has an entry for each id given so
        far (:attr:`next_id`), as `point_groups` has. Those of removed points are not read.
        """
        inputs.warn_of_dropped({"queries": queries}, "use tonari.search with differentiable=True")
        progress, threads = inputs.check_progress(progress), inputs.check_threads(threads)
        now = self._state
        for one in now.unchanged:
            one.check(queries)
        filtered = not (where is exclude is query_groups is point_groups is groups is None)
        only = None if filtered else now.only
        as_given = self._change is None and threads is None
        if only is not None and as_given:
            again = only.replayed(queries, k, progress)
            if again is not None:
                return again
        rows = self._rows(now, queries, threads)
        if only is not None and len(rows):
            those = only.those(threads)
            found = (those.searched if as_given else those.nearest)(rows, k, progress)
            return on_side_of(queries, self._finished(found))
        k = inputs.check_k(k, now.n, without_self=False)
        rules = None
        if filtered:
            rules = self._rules(now, len(rows), Given(where, exclude, query_groups, point_groups, groups))
        else:
            self._check_method(now, k)
        if len(rows):
            found = now.nearest(rows, k, rules, self._asks(threads, progress))
        else:
            found = no_neighbors(k, now.next_id, self._value_dtype(rows))
        return on_side_of(queries, self._finished(found))

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
        """The k nearest points of a stream of queries, chunk by chunk.

        Chunks are read, searched and used at the same time: while the caller has the answer to one, the next is
        searched and the one after it is read, each on a thread of its own. :func:`tonari.search_to_file` writes a file.

        Parameters
        ----------
        queries : iterable of arrays of shape (any, d), array of shape (m, d), or path
            What :meth:`search` takes, piece by piece. An iterable is read on a thread; a chunk may have any number of
            rows, none included, and may be the same buffer filled anew. An array, a memory map or a file (as
            :func:`tonari.io.read` opens it) is cut into chunks.
        k : int
        rows : int, optional
            How many queries an iterable holds, for the time to go that the progress shows.
        chunk_rows : int, optional
            Rows per chunk of an array or file. Default: 128 MiB of queries and results, or as many as are searched in
            about ten seconds if that is less.
        progress : None, bool or callable(done, total)
            Counts queries; a total that is not known is 0. None shows a bar on a terminal when the work takes over two
            seconds.

        Yields
        ------
        Neighbors(distances, indices)
            Of shape (rows of the chunk, k), one for each chunk, in order, as and where the chunk is. Together they have
            the bits of one :meth:`search` of all queries.

        Raises
        ------
        TypeError, ValueError
            What :meth:`search` refuses, after the answers to all chunks before it; rows are numbered from the beginning
            of the stream. What an iterable raises comes through.

        Notes
        -----
        At a time two chunks of queries and two of results are held. Leaving the loop early ends the threads.

        Examples
        --------
        >>> import numpy as np, tonari
        >>> index = tonari.Index(np.array([[0.0], [1.0], [3.0]], dtype=np.float32))
        >>> chunks = (np.full((rows, 1), 2.8, np.float32) for rows in (2, 1))
        >>> [found.indices.tolist() for found in index.search_chunks(chunks, k=1)]
        [[[2], [2]], [[2]]]
        """
        progress = inputs.check_progress(progress)
        return search_chunks(self._frozen(), queries, k, rows=rows, chunk_rows=chunk_rows, progress=progress)
