"""`tonari.Index`: points prepared once, searched many times."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from tonari import inputs
from tonari.api import index_file
from tonari.api.index_radius import RadiusIndex
from tonari.core.callers import callers_level
from tonari.core.floats import in_default_floats
from tonari.core.neighbors import Neighbors
from tonari.core.problem import Problem
from tonari.core.progress import ProgressLike
from tonari.exact.cuda import cuda_graph_cache
from tonari.filters.arguments import is_filtered
from tonari.methods.answer import answer, on_side_of
from tonari.methods.auto import USUAL_K, choose
from tonari.methods.decision import Decision, by_plan
from tonari.methods.place import problem_of
from tonari.methods.registry import check_search_method, search_method
from tonari.methods.where import place_for
from tonari.metrics import get_metric
from tonari.streams.searching import search_chunks

_KEPT_PLANS = 64
_OF_PLANS = ("TONARI_ISA", "TONARI_NUM_THREADS")  # what plans depend on beside their arguments


class Index(RadiusIndex):
    """Points prepared once, searched many times.

    Parameters are those of :func:`search`. The points are packed into a kernel's layout, or put into a tree, at
    construction; the array itself is kept too, since exact values come from the original rows, and must not change
    meanwhile. On CUDA it is the first search that tells of NaN and the like, so that nothing waits for the device.

    With method="auto" the choice is made once, as if as many queries as there are points were to come.

    An Index can be pickled and copied. ``pickle`` and ``copy.deepcopy`` take the points and the chosen method along and
    pack anew, by the plan of that method on the machine where the copy is; on the same machine that is the same plan.
    Points on CUDA come back on the device of the same number. ``copy.copy`` shares the points and what is packed. All
    of them answer with the same bits.

    On the CPU as many points stay packed as `memory` leaves room for beside the search at hand. The others are packed
    anew by every search. On CUDA k-d trees that do not fit on a device stay in host memory if they take at most half of
    what is free there.

    Several threads may search one Index at a time. What is packed is packed by one of them, for all; `memory` is for
    each search.

    Warns
    -----
    UserWarning
        Once, at the first search for which not all points stay packed: how many do, and the `memory` for all.

    Examples
    --------
    >>> import numpy as np, tonari
    >>> points = np.eye(3, dtype=np.float32)
    >>> index = tonari.Index(points, metric="inner_product")
    >>> index.search(points[:1], k=1).indices.tolist()
    [[0]]
    """

    @in_default_floats
    def __init__(
        self,
        points: Any,
        *,
        metric: str = "euclidean",
        method: str = "auto",
        device: str | Sequence[str] = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        progress: ProgressLike = None,
    ) -> None:
        check_search_method(method)
        self.metric = get_metric(metric).name
        progress = inputs.check_progress(progress)
        self._place = place_for(device, points=points)
        self._device = device
        self._threads = inputs.check_threads(threads)
        self._memory = inputs.parse_memory(memory)
        self._points = self._place.rows(points, "points", self.metric)
        self.n, self.d = self._points.shape
        self._asked = method
        self._begin(self._first_choice(progress), progress)

    def _begin(self, first: Decision, progress: ProgressLike) -> None:
        """Prepare the points as was decided, unless they are."""
        if first.prepared is None:
            first = first._replace(prepared=first.method.prepare(self._points, first.plan, progress))
        self.method: str = first.plan.method
        self._first = first
        kind = first.method.kind(self._problem(self._points[:1], 1))
        self._ready: dict[tuple[str, str], Decision] = {(self.method, kind): first}
        self._planned: dict[Any, Decision] = {}
        self._preparing = threading.Lock()  # of the one search that adds to what is ready
        self._warned = False

    def _problem(self, queries: Any, k: int, threads: int | None = None) -> Problem:
        """What is asked of a search for these queries."""
        given: dict[str, Any] = {"threads": threads, "memory": self._memory}
        return problem_of(self._place, self._points, queries, k, self.metric, **given)

    @property
    def points(self) -> Any:
        """The points, as they are searched: a checked array of shape (n, d), or a tensor on their device."""
        return self._points

    @property
    def devices(self) -> tuple[str, ...]:
        """CUDA devices that are searched; none on the CPU."""
        return self._place.devices

    @property
    def memory(self) -> int | None:
        """Bytes beyond the points that a search may use, as asked for."""
        return self._memory

    def __getstate__(self) -> dict[str, Any]:
        left = ("_place", "_ready", "_first", "_planned", "_preparing")
        state = {name: value for name, value in self.__dict__.items() if name not in left}
        state["_first_k"] = self._first.plan.k
        points = self._points
        if inputs.kind_of(points) == "torch" and points.untyped_storage().nbytes() > points.nbytes:
            # A tensor takes along all the memory that it is a view of.
            state["_points"] = points.clone(memory_format=sys.modules["torch"].contiguous_format)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        k = state.pop("_first_k")
        self.__dict__.update(state)
        points = self._points
        self._place = place_for(self._device, points=points)
        method = search_method(self.method, self._place.device)
        plan = method.plan(self._problem(points[:1], k, self._place.threads_to_prepare(self._threads, self.n)))
        self._begin(by_plan(method, plan), False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the points and the chosen method to a file, an uncompressed .npz, whole or not at all.

        What is packed is not written: it depends on the machine, and is packed anew by :meth:`load`, as by unpickling.
        ``numpy.load(path)["points"]`` reads the points without tonari (bfloat16 as its bits).

        Raises
        ------
        OSError
            The directory is missing, `path` is a directory, or the disk is full. An older file is then unchanged.
        """
        k = self._first.plan.k
        index_file.write(path, self._points, metric=self.metric, method=self.method, asked=self._asked, k=k)

    @classmethod
    @in_default_floats
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        device: str | Sequence[str] = "auto",
        threads: int | None = None,
        memory: int | str | None = None,
        max_expansion: float | None = None,
    ) -> Index:
        """Read what :meth:`save` wrote, and pack the points on this machine. It answers with the same bits.

        Parameters
        ----------
        path : path
        device, threads, memory
            As for :class:`Index`: they are not in the file. The points are read to host memory; "cuda" copies them to a
            device.
        max_expansion : float, optional
            As for :func:`tonari.io.read`.

        Raises
        ------
        FileFormatError
            The file is damaged, of another release or something else. A ValueError.
        FileNotFoundError

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np, tonari
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "index.npz")
        ...     tonari.Index(np.eye(3, dtype=np.float32)).save(file)
        ...     tonari.Index.load(file)
        Index(n=3, d=3, metric='euclidean', dtype=float32, method='exact')
        """
        rows, about = index_file.read(path, max_expansion)
        metric, place = get_metric(about["metric"]).name, place_for(device, points=rows)
        check_search_method(about["asked"])
        points = place.rows(rows, f"{path}: points", metric)
        (n, d), made = points.shape, object.__new__(cls)
        state = {"metric": metric, "method": about["method"], "_asked": about["asked"], "_first_k": about["k"]}
        state |= {"_points": points, "n": n, "d": d, "_device": device}
        state |= {"_threads": inputs.check_threads(threads), "_memory": inputs.parse_memory(memory)}
        made.__setstate__(state)
        return made

    def __len__(self) -> int:
        return int(self.n)

    def __copy__(self) -> Index:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _ready=dict(self._ready), _planned={}, _preparing=threading.Lock())
        return made

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
        """The k nearest points of every query; see :func:`search`.

        Queries in host memory are copied to the device that the points are on, and their results come back.
        """
        progress = inputs.check_progress(progress)
        given: dict[str, Any] = {"where": where, "exclude": exclude, "groups": groups}
        given |= {"query_groups": query_groups, "point_groups": point_groups}
        if is_filtered(**given):
            return self._search_allowed(queries, k, given, threads, progress)
        first = self._first
        if threads is None and first.plan.replayable:
            key = cuda_graph_cache.key_on(first.prepared, queries, k)
            again = cuda_graph_cache.replayed(key, (queries,), progress)
            if again is not None:
                return again
        rows = self._place.rows(queries, "queries", self.metric)
        inputs.same_width(rows, self._points)
        threads = inputs.check_threads(threads) or self._threads
        decision = self._decide_once(rows, k, threads, progress)
        return on_side_of(queries, answer(rows, self._points, decision, progress))

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
        return search_chunks(self, queries, k, rows=rows, chunk_rows=chunk_rows, progress=progress)

    def _first_choice(self, progress: ProgressLike) -> Decision:
        """The method, and a plan to prepare the points by: what is prepared does not depend on the searches to come."""
        points, one, threads = self._points, self._points[:1], self._place.threads_to_prepare(self._threads, self.n)
        if self._asked != "auto":
            method = search_method(self._asked, self._place.device)
            return by_plan(method, method.plan(self._problem(one, 1, threads)))
        problem = self._problem(one, min(USUAL_K, self.n), threads)
        return choose(problem, points, one, as_if=points, progress=progress)

    def _decide_once(self, rows: Any, k: int, threads: int | None, progress: ProgressLike) -> Decision:
        """Decide how to search, or as was decided for a search like this: planning may take longer than searching.

        Kept are plans on the CPU that do not depend on how many processors are free to use.
        """
        if self._place.devices or type(k) is not int:
            return self._decide(self._problem(rows, k, threads), progress)
        key = len(rows), k, rows.dtype, threads, *map(os.environ.get, _OF_PLANS)
        known = self._planned.get(key)
        if known is None:
            known = self._decide(self._problem(rows, k, threads), progress)
            if threads is not None or known.plan.threads == 1:
                if len(self._planned) >= _KEPT_PLANS:
                    self._planned.clear()
                self._planned[key] = known
        return known

    def _decide(self, problem: Problem, progress: ProgressLike) -> Decision:
        """The plan of a search, and the points as it needs them: prepared once for each kind of search that comes."""
        method = self._first.method
        if self._asked == "auto" and method.refuses(problem) is not None:  # a tree that cannot serve this k
            method = search_method("exact", self._place.device)
        kind = method.name, method.kind(problem)
        ready = self._ready.get(kind)
        plan = method.plan(problem, prepared_by=None if ready is None else ready.plan)
        self._warn_of_packing(plan)
        if ready is None:
            with self._preparing:
                ready = self._ready.get(kind)  # by another search meanwhile
                if ready is None:
                    ready = by_plan(method, plan, method.prepare(self._points, plan, progress))
                    self._ready[kind] = ready
        return by_plan(method, plan, ready.prepared)

    def _warn_of_packing(self, plan: Any) -> None:
        """Say once that memory is too small to hold all points packed, and what would be enough."""
        if self._warned or not plan.packs_anew:
            return
        self._warned = True
        warnings.warn(f"memory={self._memory} bytes hold {plan.packs_anew}", stacklevel=callers_level())

    def __repr__(self) -> str:
        dtype = inputs.name_of_dtype(self._points)
        return f"Index(n={self.n}, d={self.d}, metric={self.metric!r}, dtype={dtype}, method={self.method!r})"
