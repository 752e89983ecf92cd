"""The base class of `tonari.Index`: its state, which updates replace, and the checks and transformations of rows.

If the metric or its weights need transformed rows (`tonari.metrics.transforms`), segments hold transformed points
and compare them by the base metric: points are transformed when a segment is built, queries when a search begins, and
distances when it ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import operator
import sys
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.api.index.coded import CodedRows
from tonari.api.index.segments.part import Part
from tonari.api.index.segments.segment import Segment
from tonari.api.index.segments.sparse_state import SparseSegment, SparseState
from tonari.api.index.segments.state import State
from tonari.api.sparse.answers import are_sparse, changed_rows
from tonari.api.wrappers.copies import least_memory
from tonari.core.errors import Unsupported
from tonari.core.hints import Hinted
from tonari.core.process.progress import ProgressLike
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import Given
from tonari.filters.rules import Rules
from tonari.methods import repeated
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.methods.places.place import Place
from tonari.methods.registry import search_method
from tonari.methods.repeated import Way
from tonari.metrics import Metric, get_metric
from tonari.metrics.definitions import Float64
from tonari.metrics.radius import limits_of
from tonari.metrics.transforms.change import Change, Weights
from tonari.sparse.dense import compressed
from tonari.sparse.rows import SparseRows, as_sparse_rows, no_sparse_rows

Found = TypeVar("Found", Neighbors, RadiusNeighbors)


# the cache of an Index's present state, in the form that tonari.methods.repeated.repeating needs
kept_of = operator.attrgetter("_state.kept")


class IndexBase(Hinted):
    """The fields of :class:`tonari.Index`, and helpers that its methods share."""

    d: int
    metric: str
    weights: Weights | None
    transform: Float64 | None = None
    _asked: str
    _bits: int | None = None  # number of columns of bool rows; packing then pads them to whole bytes
    _base: str
    _call: Call
    _change: Change | None
    _coded: CodedRows | None = None
    _copied: int
    _device: Any  # the argument `device`, as the caller passed it
    _memory: int | None
    _metric: Metric  # the metric of returned distances; the metric in `_call` compares rows
    _overrides: dict[str, Any]
    _state: State | SparseState
    _takes_sparse: bool = False  # whether rows are sparse; _state is then a SparseState
    _threads: int | None

    @property
    def dtype(self) -> str:
        """The dtype of the rows that are compared: float64 for transformed rows, else the dtype of the points."""
        return "float64" if self._change is not None else inputs.name_of_dtype(self._state.sample)

    def _set_metric(self, metric: str, change: Change | None) -> None:
        self._metric = get_metric(metric)
        self.metric, self._change = self._metric.name, change
        self.weights, self.transform, self._base = None, None, self.metric
        if change is not None:
            self.weights, self.transform, self._base = change.weights, change.transform, change.base

    def _set_call(self, place: Place) -> None:
        """Set the call that all searches share, whose metric compares transformed rows."""
        self._call = Call(
            metric=get_metric(self._base),
            place=place,
            method=self._asked,
            threads=self._threads,
            memory=self._memory,
            progress=False,
        )

    def _asks(self, threads: int | None, progress: ProgressLike) -> Call:
        """Return the call with the `threads` and `progress` of one search."""
        call = self._call if threads is None else dataclasses.replace(self._call, threads=threads)
        return call.with_progress(progress)

    def _segment(
        self,
        rows: Any,
        taken: int = 0,
        method: str | None = None,
        progress: ProgressLike = False,
        chosen: Any = None,
        source: Any = None,
    ) -> Any:
        """Prepare checked rows as a segment, by `method` or else by the method of the Index."""
        if isinstance(rows, SparseRows):
            return SparseSegment(rows, self._call, self._change, taken)
        change, changed = self._change, 0
        if change is not None and self._limits(rows):
            changed = change.copied_bytes(tuple(rows.shape), inputs.name_of_dtype(rows))
        with self._after_copies(self._copied + changed, rows) as memory:
            return Segment(
                self._compared(rows, "points"),
                dataclasses.replace(self._call, method=method or self._asked, memory=memory, progress=progress),
                taken=taken,
                chosen=chosen,
                given=rows,
                source=source,
                overrides=self._overrides if method is None else None,
                coded=self._coded,
                copied=changed,
            )

    def _set_sparse_state(self, rows: SparseRows, ids: npt.NDArray[np.int64], next_id: int) -> None:
        """Prepare sparse rows as a single segment; the rows must not be changed afterwards."""
        parts = [Part(self._segment(rows), ids)] if len(rows) else []
        self._state, self._takes_sparse = SparseState(parts, next_id, no_sparse_rows(rows.d, rows.dtype)), True

    def _limits(self, rows: Any) -> bool:
        """Whether `memory` limits the memory that holds these rows: on CUDA, it does not limit host memory."""
        return not (self._call.place.devices and inputs.place_of(rows, "points") is None)

    def _after_copies(self, copied: int, points: Any) -> contextlib.AbstractContextManager[int | None]:
        """Yield the memory that copies of the points leave, and restate refusals in terms of all of it."""
        least = functools.partial(least_memory, [points], self._base, None, self._change)
        return inputs.after_copies(copied, self._memory, "copies of the points", least)

    def _own(self, points: Any, *, copy: bool) -> Any:
        """Check the points, and copy them if `copy` is True; copies count towards `memory`."""
        limited = self._memory is not None and self._limits(points)
        self._copied = inputs.copied_bytes(points, bits=self._metric.bits) if limited else 0
        with self._after_copies(self._copied, points):
            rows = self._given_rows(points, "points")
        if not (copy and inputs.shares_memory(rows, points)):
            return rows
        self._copied += rows.nbytes if limited else 0
        with self._after_copies(self._copied, points):
            if isinstance(rows, np.ndarray):
                return rows.copy()
            return rows.clone(memory_format=sys.modules["torch"].contiguous_format)

    @contextlib.contextmanager
    def _after_copies_of_queries(self, queries: Any) -> Iterator[int]:
        """Yield the bytes that copies of the queries take of `memory`; restate refusals in terms of all of it."""
        if self._memory is None or self._takes_sparse or not self._limits(queries):
            yield 0
            return
        copied = inputs.copied_bytes(queries, bits=self._metric.bits)
        if are_sparse(queries) and len(queries.shape) == 2:
            copied += math.prod(queries.shape) * (8 if queries.dtype == np.float64 else 4)
        if self._change is not None and len(shape := tuple(np.shape(queries))) == 2:
            copied += self._change.copied_bytes(shape, str(getattr(queries, "dtype", "")))
        with inputs.after_copies(copied, self._memory, "copies of the queries"):
            yield copied

    def _compared(self, rows: Any, name: str, threads: int | None = None) -> Any:
        """Transform checked rows for comparison, and check them again, because weights may make values too large."""
        if self._change is None:
            return rows
        if isinstance(rows, SparseRows):
            return changed_rows(self._change, rows, name)
        call = self._call
        threads = threads or call.threads
        return call.place.rows(self._change.rows(rows, name, threads), name, call.metric, threads)

    def _given_rows(self, x: Any, name: str, threads: int | None = None) -> Any:
        """Check rows that the caller passed, without transforming them."""
        if self._takes_sparse:
            return self._sparse_rows(x, name)
        if are_sparse(x):
            x = self._dense_rows(x, name)
        return self._call.place.rows(x, name, self._metric, threads or self._threads)

    def _sparse_rows(self, x: Any, name: str) -> SparseRows:
        """Check rows for an Index of sparse rows, and return them as sparse rows; only queries may be dense."""
        if are_sparse(x):
            return as_sparse_rows(x, name, sets=self._metric.bits)
        if name == "queries":
            return compressed(x, name, sets=self._metric.bits)
        raise TypeError(
            f"{name}: is a dense {type(x).__name__}, but the points of this Index are sparse; use "
            "scipy.sparse.csr_array(...)"
        )

    def _dense_rows(self, x: Any, name: str) -> Any:
        """Convert sparse queries to a dense array, for an Index of dense rows."""
        if name == "queries" and not self._metric.bits:
            return as_sparse_rows(x, name).toarray()
        raise TypeError(
            f"{name}: are sparse, but the points of this Index are "
            + ("rows of bits; use .toarray() and .astype(bool)" if self._metric.bits else "dense; use .toarray()")
        )

    def _rows(self, now: State | SparseState, queries: Any, threads: int | None) -> Any:
        """Check queries, and transform them if the metric or its weights require it."""
        rows = self._given_rows(queries, "queries", threads)
        inputs.same_width(rows, now.sample)
        if self._metric.bits and not isinstance(now, SparseState):
            inputs.same_bits(inputs.bool_columns(queries), self._bits)
        return self._compared(rows, "queries", threads)

    def _keep(self, now: State, decision: Decision, queries: Any, quick: Way | None, run: Way | None = None) -> None:
        """Cache functions that repeat a search of a state: `quick(queries, points)`, else `run(queries)`."""
        if self._change is None and self._coded is None:
            ways = _after_checks(now, quick), None if run is None else _after_checks(now, lambda rows, _: run(rows))
            repeated.keep(decision, (queries,), *ways, kept=now.kept)

    def _finished(self, found: Found) -> Found:
        """Convert the distances in a result to the requested metric."""
        return found if self._change is None else found._replace(distances=self._change.values(found.distances))

    def _frozen(self) -> Any:
        """Return an Index that shares the present state, and does not change when this Index is updated later."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _updating=threading.Lock())
        return made

    def _rules(self, now: State | SparseState, m: int, given: Given) -> Rules | None:
        """Check the filters of m queries; masks and `point_groups` have one entry for each id, not for each point."""
        if not given:
            return None
        self._refuse_codes("filters", "search the array of the rows, tonari.search(queries, points, k, ...)")
        noun = "points" if now.next_id == now.n else f"ids given so far (Index.next_id), of which {now.n} are left"
        return given.rules(m, now.next_id, noun=noun)

    def _refuse_codes(self, what: str, fix: str) -> None:
        """Raise Unsupported for an Index with codes; the message names the missing feature, `what`."""
        if self._coded is not None:
            raise Unsupported(f"{what}: an Index with codes={self._coded.codes!r} supports none; {fix}")

    def _check_method(self, now: State | SparseState, k: int) -> None:
        """Raise Unsupported if the caller named a method that does not support all points together."""
        if self._asked == "auto" or isinstance(now, SparseState):
            return
        one = self._compared(now.sample[:1], "points")
        problem = dataclasses.replace(self._call.problem(one, one, 1), n=now.n, k=k)
        refused = search_method(self._asked, problem.device).refuses(problem)
        if refused is not None:
            raise Unsupported(refused)

    def _value_dtype(self, rows: Any) -> str:
        """Return the dtype of distances between transformed queries and points."""
        return "float64" if "float64" in (inputs.name_of_dtype(rows), self.dtype) else "float32"

    def _checked(
        self, now: State | SparseState, queries: Any, radius: Any, similarity: Any, closed: Any, threads: int | None
    ) -> tuple[Any, npt.NDArray[Any]]:
        """Check the arguments of a radius search.

        Return the transformed queries, and the largest distance for each of them.
        """
        now.check_unchanged()
        rows = self._rows(now, queries, threads)
        value = self._value_dtype(rows)
        within = {"radius": radius, "min_similarity": similarity, "closed": closed}
        if self._change is not None:
            within = self._change.within(len(rows), **within)
        return rows, limits_of(self._call.metric, len(rows), value, **within)


def _after_checks(now: State, quick: Way | None) -> Way | None:
    """Return a function that checks that the points are unchanged, and then calls `quick`.

    Return None without `quick` or `only`.
    """
    if quick is None or now.only is None:
        return None
    points, unchanged = now.only.points, now.unchanged

    def first(queries: Any) -> Any:
        for one in unchanged:
            one.check(queries)
        return quick(queries, points)

    return first


def quick_search_of(index: IndexBase, queries: Any, k: int, threads: int | None) -> tuple[Way, Decision] | None:
    """Return a function that repeats a search without planning, and the decision of this search.

    Return None if that is impossible. The function takes queries of the same shape and dtype as `queries`. It returns
    None for queries that need a full search by the Index, for example to name an invalid value.
    """
    now, call = index._state, index._call
    if not isinstance(now, State) or now.only is None or index._coded is not None or index._change is not None:
        return None
    those = now.only.those(threads)
    decision = those.decided(queries, k, False)
    way = None if call.place.devices else repeated.quick_search(those.call, decision, queries, those.rows)
    quick = _after_checks(now, way)
    return None if quick is None else (quick, decision)


def refuse_streams(now: State | SparseState, verb: str) -> None:
    """Refuse a stream of queries for an Index of sparse rows."""
    if isinstance(now, SparseState):
        raise Unsupported(f"{verb}_chunks: an Index of sparse rows takes no streams; call {verb} for parts of the rows")
