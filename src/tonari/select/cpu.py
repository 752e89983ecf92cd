"""k-selection on the CPU: threads process chunks of rows; a chunk is one call of a kernel that releases the GIL.

Up to 16 rows are processed together in the lanes of a vector, so chunks are multiples of 16 rows. The size of a chunk
is chosen so that a call takes a fixed time, because Ctrl-C is noticed only between calls. Chunks become smaller towards
the end, so that all threads finish together. If there are only a few groups of 16 rows, the rows are divided evenly
among the threads instead. A selection with counters always keeps the groups together, because its counts describe the
paper's method.

If there are fewer groups than threads, the columns are cut into parts as well. A second selection then finds the answer
among the k best of each part. These candidates are in the column order of the parts, and sorted by (value, column)
within a part. The second selection resolves a tie in favour of the first candidate, which has the smaller column.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core import _native
from tonari.core.process.isa import chosen_isa
from tonari.core.process.workers import Workers, default_threads
from tonari.select import tuning
from tonari.select.request import Counters, Request, Selection

_GROUP = 16  # rows that are processed together, in the lanes of a vector register

_QUEUE = {"updates", "flushes", "examined", "lanes"}
_COUNTED: dict[str, set[str]] = {
    "insertion": _QUEUE,
    "heap": _QUEUE,
    "merge_queue": _QUEUE | {"merges"},
    "hierarchical": {"examined"},
    "quick": {"examined"},
    "bitonic": set(),
    "threshold": {"examined", "compression_ratio", "threshold_ratio"},
    "radix": {"examined"},
}

_Array = npt.NDArray[Any]


def select_on_cpu(method: str, request: Request, threads: int | None) -> tuple[Selection, int | None]:
    """Answer a selection request whose values are in a NumPy array.

    Returns
    -------
    Selection
        Its values and indices are NumPy arrays. bfloat16 values are returned as their bits, in int16.
    int or None
        The first row that contains NaN if the request asks for it, else None.
    """
    rows, n = request.values.shape
    workers = Workers(threads or default_threads(_seconds(method, rows, n, request.k)))
    job = _Job(method, request)
    parts = 1 if request.counters is not None or rows == 0 else _parts(rows, n, request.k, workers.threads)
    if parts > 1:
        return job.by_parts(parts, workers)
    return job.by_rows(workers)


def native_options(options: Any, n: int) -> dict[str, Any]:
    """Convert a method's options to the keyword arguments of the native kernels, for rows of n values.

    Options that are None are omitted, because the kernels then choose the value, and so are options that apply only on
    a GPU. Groups, buffers and samples are limited to n + 1 values, because larger ones would take memory and have no
    effect.

    >>> from dataclasses import make_dataclass
    >>> native_options(make_dataclass("Options", ["samples", "batch", "finish"])(None, 32, "halving"), 100)
    {'batch': 32, 'heap': False}
    """
    given = {name: value for name, value in vars(options).items() if value is not None and name != "unit"}
    if "finish" in vars(options):
        given["heap"] = given.pop("finish", "halving") == "heap"
    for name in {"group", "buffer_size", "samples"} & set(given):
        given[name] = min(given[name], n + 1)
    return given


def _seconds(method: str, rows: int, n: int, k: int) -> float:
    """Return the expected seconds of a selection on one thread."""
    if method == "bitonic" and 4 * n <= tuning.SHORT_ROW_BYTES:
        short = tuning.SHORT_ROW_SECONDS + tuning.SHORT_VALUE_SECONDS * n + tuning.SHORT_SELECTED_SECONDS * k
        return rows * short
    slower = tuning.QUEUE_TIMES if method in ("insertion", "heap", "merge_queue") else 1.0
    return slower * rows * (tuning.ROW_SECONDS + tuning.VALUE_SECONDS * n + tuning.SELECTED_SECONDS * k)


def _parts(rows: int, n: int, k: int, threads: int) -> int:
    """Return the number of parts into which the columns are cut, so that every thread has work and calls stay short."""
    groups = -(-rows // _GROUP)
    wanted = max(-(-threads // groups), -(-min(rows, _GROUP) * n // tuning.MOST_VALUES))
    return max(1, min(wanted, n // max(tuning.LEAST_PART, tuning.PART_OVER_K * k)))


def _even(rows: int, quantum: int, threads: int) -> int:
    """Return the rows of the smallest chunk: `quantum`, or fewer to divide a few rows evenly among threads."""
    groups = -(-rows // quantum)
    if not 0 < groups < 4 * threads:
        return quantum
    return max(1, -(-rows // (-(-groups // threads) * threads)))


@dataclass(frozen=True)
class _Job:
    """One selection: the method and the request, which all calls of the native kernel share."""

    method: str
    request: Request

    def by_rows(self, workers: Workers) -> tuple[Selection, int | None]:
        """Select from whole rows: threads take chunks of rows until none are left."""
        request = self.request
        rows, n = request.values.shape
        # In method "threshold", the rows of a batch share one buffer size, so a batch must not be cut.
        quantum = math.lcm(_GROUP, getattr(request.options, "batch", None) or 1)
        if request.counters is None:
            quantum = _even(rows, quantum, workers.threads)
        queue = _RowQueue(rows, quantum, workers.threads)
        found = self._room()
        counted: list[_native.SelectCounters] = []

        def work(_: int) -> None:
            counters = None if request.counters is None else _native.SelectCounters()
            size = tuning.FIRST_VALUES // n
            while (chunk := queue.draw(size)) is not None:
                workers.check()
                started = time.perf_counter()
                queue.stop_at(self._call(request.values, request.lengths, chunk, found, counters))
                faster = tuning.SLICE_SECONDS / max(time.perf_counter() - started, 1e-9)
                size = int((chunk[1] - chunk[0]) * min(4.0, faster))
            if counters is not None:
                counted.append(counters)

        workers.map(work, range(min(workers.threads, max(1, -(-rows // quantum)))))
        if request.counters is not None:
            _fill(request.counters, self.method, counted)
        return found, queue.nan_row

    def by_parts(self, parts: int, workers: Workers) -> tuple[Selection, int | None]:
        """Select the k best of each part of the columns, then the k best of these candidates."""
        request = self.request
        rows, n = request.values.shape
        edges = [n * part // parts for part in range(parts + 1)]
        found = [self._room() for _ in range(parts)]
        group = -(-rows // -(-rows // _GROUP))
        ordered = dataclasses.replace(self, request=dataclasses.replace(request, sorted=True))

        def work(task: tuple[int, int]) -> int:
            workers.check()
            begin, part = task
            left, right = edges[part], edges[part + 1]
            lengths = None if request.lengths is None else np.clip(request.lengths - left, 0, right - left)
            chunk = begin, min(begin + group, rows)
            row = ordered._call(request.values[:, left:right], lengths, chunk, found[part], None)
            indices = found[part].indices[slice(*chunk)]
            indices[indices >= 0] += left
            return row

        nan_rows = workers.map(work, [(begin, part) for begin in range(0, rows, group) for part in range(parts)])
        seen = [row for row in nan_rows if row >= 0]
        if seen and request.check_nan:
            return found[0], min(seen)
        candidates = np.concatenate([part.values for part in found], axis=1)
        columns = np.concatenate([part.indices for part in found], axis=1)
        counts = None
        # short rows have missing entries in some parts, which are moved behind the other candidates
        if request.lengths is not None:
            order = np.argsort(columns < 0, axis=1, kind="stable")
            candidates, columns = (np.take_along_axis(array, order, axis=1) for array in (candidates, columns))
            counts = np.count_nonzero(columns >= 0, axis=1)
        again = dataclasses.replace(request, values=candidates, lengths=counts, check_nan=False)
        best, _ = _Job(self.method, again).by_rows(workers)
        indices = np.take_along_axis(columns, np.maximum(best.indices, 0), axis=1)
        indices[best.indices < 0] = -1
        return Selection(best.values, indices), None

    def _room(self) -> Selection:
        values, shape = self.request.values, (len(self.request.values), self.request.k)
        return Selection(np.empty(shape, values.dtype), np.empty(shape, np.int32))

    def _call(
        self,
        values: _Array,
        lengths: npt.NDArray[np.int64] | None,
        rows: tuple[int, int],
        found: Selection,
        counters: _native.SelectCounters | None,
    ) -> int:
        request = self.request
        row = _native.select_rows(
            chosen_isa(),
            self.method,
            _bits(values),
            request.dtype,
            *rows,
            request.k,
            lengths=lengths,
            largest=request.largest,
            sorted=request.sorted,
            options=native_options(request.options, values.shape[1]),
            out_values=_bits(found.values),
            out_indices=found.indices,
            counters=counters,
        )
        return row if request.check_nan else -1


class _RowQueue:
    """The rows that remain, handed out to threads in order, in chunks that begin at multiples of `quantum`."""

    def __init__(self, rows: int, quantum: int, threads: int) -> None:
        self.nan_row: int | None = None
        self._next, self._end = 0, rows
        self._quantum, self._threads = quantum, threads
        self._lock = threading.Lock()

    def draw(self, size: int) -> tuple[int, int] | None:
        """Return the begin and the end of the next chunk, of about `size` rows, or None if no rows are left."""
        with self._lock:
            begin, left = self._next, self._end - self._next
            if left <= 0:
                return None
            fair = left // (2 * self._threads) if self._threads > 1 else left
            chunk = max(1, min(size, fair) // self._quantum) * self._quantum
            self._next = min(begin + chunk, self._end)
            return begin, self._next

    def stop_at(self, nan_row: int) -> None:
        """Record that row `nan_row` contains NaN, and hand out no more rows; do nothing if `nan_row` is -1.

        Later rows need no answer, and threads have already taken all earlier rows. If several rows are recorded, the
        smallest row number remains.
        """
        if nan_row >= 0:
            with self._lock:
                self.nan_row = nan_row if self.nan_row is None else min(self.nan_row, nan_row)
                self._end = 0


def _bits(values: _Array) -> _Array:
    """View values in the dtype that the native kernels expect: float16 as int16."""
    return values.view(np.int16) if values.dtype == np.float16 else values


def _fill(counters: Counters, method: str, counted: list[_native.SelectCounters]) -> None:
    """Add up the counts of all threads in `counters`; counters that the method does not have stay None."""
    has = _COUNTED[method]
    if "updates" in has:
        counters.updates = np.sum([part.updates for part in counted if part.updates], axis=0, dtype=np.int64)
    for name in has & {"merges", "flushes", "examined"}:
        setattr(counters, name, sum(getattr(part, name) for part in counted))
    if "lanes" in has:
        counters.lanes = max(part.lanes for part in counted)
    if "compression_ratio" in has:
        counters.compression_ratio = _mean(sum(part.compression for part in counted), [p.batches for p in counted])
        counters.threshold_ratio = _mean(sum(part.threshold_ratio for part in counted), [p.rows for p in counted])


def _mean(total: float, counts: list[int]) -> float | None:
    return total / sum(counts) if sum(counts) else None
