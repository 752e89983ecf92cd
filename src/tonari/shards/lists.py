"""Merge, renumber and check the neighbour lists that tasks of a build compute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.cuda.streams import synchronize
from tonari.graph.files.directory import value_dtype
from tonari.inputs import to_host
from tonari.methods.answer import checked
from tonari.methods.places.value_range import may_underflow
from tonari.shards import tuning
from tonari.shards.tasks import Worker


def in_host_memory(x: Any) -> npt.NDArray[Any]:
    """Return an array or tensor as a NumPy array in host memory."""
    return np.asarray(to_host(x))


def empty_lists(worker: Worker, rows: int) -> Neighbors:
    """Return new lists for `rows` rows; all their neighbours are missing (-1)."""
    lists = _new_lists(worker, rows)
    _clear(worker, lists)
    return lists


def _new_lists(worker: Worker, rows: int) -> Neighbors:
    """Return uninitialized lists for `rows` rows."""
    shape, source = (rows, worker.job.k), worker.job.source
    return Neighbors(np.empty(shape, value_dtype(source.dtype)), np.empty(shape, index_dtype(source.n)))


def _clear(worker: Worker, lists: Neighbors) -> None:
    """Overwrite all entries of lists by missing neighbours: -1, at the worst possible distance."""
    lists.distances[...] = -np.inf if worker.job.record.descending else np.inf
    lists.indices[...] = -1


def merge_into(worker: Worker, kept: Neighbors, rows: npt.NDArray[np.int64], found: Neighbors) -> None:
    """Merge the lists `found` into the lists `kept`, in place.

    `rows` has the ascending row numbers of `found` in `kept`.
    """
    merge_parts(worker, kept, [(rows, found)])


def merge_parts(worker: Worker, kept: Neighbors, parts: Sequence[tuple[npt.NDArray[np.int64], Neighbors]]) -> None:
    """Merge several pairs (rows, found), each as in :func:`merge_into`, into the lists `kept`.

    Threads divide the rows.
    """
    _merge_parts(worker, kept, parts, new=False)


def merged_parts(worker: Worker, rows: int, parts: Sequence[tuple[npt.NDArray[np.int64], Neighbors]]) -> Neighbors:
    """Merge several pairs (rows, found), each as in :func:`merge_into`, into new lists, and return the new lists.

    The threads that merge also initialize the new lists: a single thread would need longer for that than all threads
    for the merge.
    """
    lists = _new_lists(worker, rows)
    _merge_parts(worker, lists, parts, new=True)
    return lists


def _merge_parts(
    worker: Worker, kept: Neighbors, parts: Sequence[tuple[npt.NDArray[np.int64], Neighbors]], *, new: bool
) -> None:
    descending = worker.job.record.descending
    pieces = cut(len(kept.indices), tuning.MERGED_AT_ONCE)
    ends = [0, *(piece.stop for piece in pieces)]
    # Computed once for all threads: Python code in several threads would wait for the interpreter's lock.
    bounds = [np.searchsorted(rows, ends).tolist() for rows, _ in parts]
    # plain arrays, because slicing a memory map is slow
    plain = [Neighbors(*map(np.asarray, found)) for _, found in parts]

    def merge(at: int) -> None:
        if new:
            _clear(worker, Neighbors(*(part[pieces[at]] for part in kept)))
        for (rows, _), found, of in zip(parts, plain, bounds, strict=True):
            some = slice(of[at], of[at + 1])
            if some.start == some.stop:
                continue
            distances = np.ascontiguousarray(found.distances[some], kept.distances.dtype)
            indices = np.ascontiguousarray(found.indices[some], kept.indices.dtype)
            _native.merge_into(*kept, rows[some], distances, indices, descending)

    Workers(min(worker.threads, tuning.MERGING_THREADS)).map(merge, range(len(pieces)))


def in_range(worker: Worker, first: int, found: Neighbors) -> Neighbors:
    """Check that no distance in finished lists has overflowed or underflowed, and return the lists.

    The lists are in host memory and belong to consecutive rows, beginning with row number `first`. Unfinished
    lists may contain such distances, since nearer points may still replace them. If a distance in a finished list may
    have overflowed or underflowed, both of its rows are read again to decide.

    Raises
    ------
    ValueError
        As :func:`tonari.methods.places.value_range.check_range`; the message has the row number in the source.
    """
    record, tiny = worker.call.metric, float(np.finfo(found.distances.dtype).tiny)
    one = worker.load.range(0, 1)
    least = tiny if may_underflow(record, one, one) else 0.0
    for part in cut(len(found.indices), tuning.MERGED_AT_ONCE):
        values = np.abs(found.distances[part])
        lost = ((values < least) | np.isinf(values)) & (found.indices[part] >= 0)
        rows = np.flatnonzero(lost.any(axis=1))
        for some in cut(len(rows), max(1, tuning.READ_AGAIN // (worker.job.k * one.shape[1]))):
            _refuse_lost(worker, first, found, part.start + rows[some], lost[rows[some]])
    return found


def _refuse_lost(worker: Worker, first: int, found: Neighbors, rows: npt.NDArray[np.int64], lost: Any) -> None:
    """Read both rows of each distance marked in `lost`; raise ValueError if the distance overflowed or underflowed."""
    ids, places = np.unique(found.indices[rows][lost], return_inverse=True)
    indices = np.full(lost.shape, -1, np.int64)
    indices[lost] = places
    names = first + rows
    queries, points = worker.load_queries.at(names), worker.load.at(ids.astype(np.int64))
    checked(Neighbors(found.distances[rows], indices), queries, points, worker.call.metric, names=names.tolist())


def lists_here(worker: Worker, found: Neighbors) -> Neighbors:
    """Return lists in host memory, copied from a device if necessary."""
    if isinstance(found.indices, np.ndarray):
        return found
    return _carried(worker, found, inputs.dtype_of(inputs.name_of_dtype(found.indices)), lambda some: some)


def renumbered(worker: Worker, found: Neighbors, ids: npt.NDArray[Any]) -> Neighbors:
    """Return lists in host memory in which every index i is replaced by ``ids[i]``, its row number in the source."""
    if isinstance(found.indices, np.ndarray):
        indices = found.indices
        return Neighbors(found.distances, np.where(indices < 0, ids.dtype.type(-1), ids[np.maximum(indices, 0)]))
    numbers = found.indices.new_tensor(ids)

    def named(some: Any) -> Any:
        return numbers[some.long().clamp(min=0)].masked_fill_(some < 0, -1)

    return _carried(worker, found, ids.dtype, named)


def shifted(worker: Worker, found: Neighbors, first: slice, second: slice) -> Neighbors:
    """Return lists in host memory, with positions among the rows of two slabs replaced by row numbers of the source.

    `first` and `second` are the ranges of rows of both slabs, which are concatenated in this order.
    """
    dtype, size, moved = index_dtype(worker.job.source.n), first.stop - first.start, second.start - first.stop
    if isinstance(found.indices, np.ndarray):
        ids = found.indices.astype(dtype)
        ids += np.where(ids < 0, 0, first.start + np.where(ids < size, 0, moved)).astype(dtype)
        return Neighbors(found.distances, ids)
    import torch

    def named(some: Any) -> Any:
        ids = some.to(torch.int64)
        return torch.where(ids < 0, ids, first.start + ids + (ids >= size) * moved)

    return _carried(worker, found, dtype, named)


def _carried(worker: Worker, found: Neighbors, dtype: np.dtype[Any], named: Callable[[Any], Any]) -> Neighbors:
    """Copy lists from a device to host memory, block by block; `named` renumbers the indices on the device.

    If the plan stages rows in page-locked memory, the lists are copied to such memory too: it is reused, whereas the
    first write to new memory takes longer than the copy.
    """
    from tonari.cuda.copying.staging import Collector, empty_on_host

    shape, device = tuple(found.indices.shape), found.indices.device
    locked = worker.job.plan.staged_bytes > 0 and device.type == "cuda"
    distances = empty_on_host(shape, inputs.name_of_dtype(found.distances), locked=locked)
    indices = empty_on_host(shape, dtype.name, locked=locked)
    with contextlib.nullcontext() if locked else Collector(device) as collector:
        for part in cut(len(indices), tuning.RENUMBERED_AT_ONCE):
            for there, here in (
                (found.distances[part], distances[part]),
                (named(found.indices[part]).to(indices.dtype), indices[part]),
            ):
                if collector is None:
                    here.copy_(there, non_blocking=True)
                else:
                    collector.collect(there.contiguous(), here.numpy())
        if collector is not None:
            collector.arrive()
    synchronize((device,))
    return Neighbors(distances.numpy(), indices.numpy())


def without_own(found: Neighbors, own: npt.NDArray[np.int64]) -> Neighbors:
    """Remove each row's own point from its list, and put a missing neighbour (-1) at the end in its place."""
    is_own = found.indices == own[:, None]
    order = np.argsort(is_own, axis=1, kind="stable")
    indices = np.where(is_own, -1, found.indices)
    return Neighbors(*(np.take_along_axis(part, order, axis=1) for part in (found.distances, indices)))
