"""Remove points from a graph, and replace the rows of points.

In an exact graph, every unlisted point follows the last entry of the list in the order of (distance, index). After
listed points have been removed or replaced, the remaining entries are therefore still the nearest points up to the old
last entry. The neighbours of a point are searched again (repair.py) only if fewer than k entries remain, including
replaced points that precede the old last entry.

If building a new graph is expected to be faster, as on a GPU, it is built instead. An approximate graph is refined by
NN-Descent, which starts from the remaining lists.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.process.floats import in_default_floats
from tonari.core.process.progress import Progress
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.slices import cut
from tonari.core.trail import Record, decided, part, recording
from tonari.graph import tuning
from tonari.graph.building.build import GraphOptions, build_lists
from tonari.graph.building.repair import Ids, nearest_within, search_again, search_plainly
from tonari.graph.building.sides import check_graph, refuse_filters, refuse_incomplete, refuse_unsupported
from tonari.graph.lists import Lists
from tonari.methods.call import Call
from tonari.methods.places.points import Points
from tonari.nn_descent.plan import check_recall, check_seed
from tonari.nn_descent.planning.planner import RECALL
from tonari.select.merge import merge_neighbors


@dataclass(frozen=True, kw_only=True)
class _Request:
    """A checked call: the graph, its points, and the points that are removed or replaced.

    Attributes
    ----------
    lists : Lists
    rows : checked rows of shape (n, d)
    ids : int64 array
        Ascending and distinct.
    order : int64 array
        The permutation that restores the caller's order: the caller passed ``ids[order]``.
    call : Call
    side : tuple
        The library and the device of the caller's points.
    recall : float, optional
        None for an exact graph.
    seed : int
    """

    lists: Lists
    rows: Any
    ids: Ids
    order: Ids
    call: Call
    side: inputs.Side
    recall: float | None
    seed: int

    @classmethod
    def of(cls, lists: Lists, points: Any, ids: Any, call: Call, recall: Any, seed: Any) -> _Request:
        """Check the arguments of a call, and return them as a request."""
        if recall is not None and lists.exact:
            raise ValueError(f"recall={recall!r}: the graph is exact, and stays so; leave recall out")
        target = None if lists.exact else check_recall(RECALL if recall is None else recall)
        seed = check_seed(seed)
        refuse_unsupported(call.metric)
        refuse_filters(lists, "the graph")
        rows = call.rows(points, "points")
        check_graph(lists, rows, "the graph", "points")
        refuse_incomplete(lists, "the graph")
        numbers, order = _numbers(ids, lists.n)
        return cls(
            lists=lists,
            rows=rows,
            ids=numbers,
            order=order,
            call=call,
            side=inputs.side_of(points, "points"),
            recall=target,
            seed=seed,
        )

    @property
    def k(self) -> int:
        """Number of neighbours, not counting the point itself."""
        return self.lists.k - self.lists.include_self

    def others(self) -> Neighbors:
        """Return the lists in host memory, without the column of the points themselves."""
        first = int(self.lists.include_self)
        return Neighbors(*(part[:, first:] for part in self.lists.in_numpy()))

    def progress(self, rows: int) -> Progress:
        """Return a progress bar that counts `rows` searched rows."""
        return Progress(self.call.progress, total=rows, seconds=None, label="neighbours", unit="row")

    def finished(self, found: Neighbors, rows: Any, record: Record) -> Lists:
        """Return the exact graph of `rows`, whose neighbour lists are `found`.

        Its arrays belong to the library of the caller's points and are on their device.
        """
        place, lists = self.call.place, self.lists
        if place.devices:
            found = Neighbors(*map(place.there, found))
        if lists.include_self:
            found = place.with_self(found, rows, self.call.metric)
        found = Neighbors(*(inputs.hand_back(part, self.side) for part in found))
        return dataclasses.replace(lists, found=found, report=None, seed=None, record=record)

    def anew(self, rows: Any, lost: int, record: Record) -> Lists | None:
        """Build a new exact graph of `rows`.

        Return None if searching again for the `lost` incomplete lists should be faster.
        """
        if not self.k:
            return None
        seconds = Points(rows, self.call).decided(rows, self.k, False, self_join=True).seconds
        share = min(1.0, lost / len(rows))
        update = tuning.CHANGED_ENTRY * len(rows) * self.k + tuning.SEARCHED_AGAIN * share * seconds
        if update < seconds:
            return None
        decided("lists", f"a new graph is built: {seconds:.3g} s expected, {update:.3g} s for changes of the lists")
        new = build_lists(rows, self.lists.k, self.call, GraphOptions(include_self=self.lists.include_self))
        record.tried("lists of a new graph", len(rows), len(rows))
        near = Neighbors(*(inputs.hand_back(part, self.side) for part in new.found))
        return dataclasses.replace(new, found=near, record=record)

    def refined(self, found: Neighbors, rows: Any, record: Record) -> Lists:
        """Refine the lists `found` by NN-Descent, and return the approximate graph of `rows`."""
        lists = self.lists
        decided("lists", "the graph is approximate: NN-Descent starts from its lists")
        start = Lists(found, lists.metric, lists.method)
        options = GraphOptions(recall=self.recall, seed=self.seed, start=start, include_self=lists.include_self)
        refined = build_lists(rows, lists.k, dataclasses.replace(self.call, method="nn-descent"), options)
        near = Neighbors(*(inputs.hand_back(part, self.side) for part in refined.found))
        return dataclasses.replace(refined, found=near, record=record)


@in_default_floats
def remove_points(lists: Lists, points: Any, ids: Any, call: Call, *, recall: float | None, seed: int) -> Lists:
    """Remove points from a graph; see :meth:`tonari.KNNGraph.remove`."""
    request = _Request.of(lists, points, ids, call, recall, seed)
    if not len(request.ids):
        return lists
    stays = np.ones(lists.n, bool)
    stays[request.ids] = False
    left = np.flatnonzero(stays)
    _refuse_few(len(left), request)
    rows = inputs.rows_at(request.rows, left)
    with recording("remove", len(left)) as record:
        if request.recall is None and (new := request.anew(rows, 0, record)) is not None:
            return new
        # a missing neighbour, -1, reads number[-1], which stays -1
        number = np.full(lists.n + 1, -1, index_dtype(len(left)))
        number[left] = np.arange(len(left))
        distances, indices = (part[left] for part in request.others())
        found, short = _without_missing(Neighbors(distances, number[indices]), descending=call.metric.descending)
        if request.recall is not None:
            return request.refined(found, rows, record)
        if (new := request.anew(rows, len(short), record)) is not None:
            return new
        record.tried("lists without a removed point", len(left), len(left) - len(short))
        if request.k:
            with part("lists that are searched", len(short)), request.progress(len(short)) as bar:
                search_again(Points(rows, call), found, short, bar)
        record.tried("lists that contained a removed point", len(short), len(short))
        return request.finished(found, rows, record)


@in_default_floats
def replace_points(
    lists: Lists, points: Any, ids: Any, rows: Any, call: Call, *, recall: float | None, seed: int
) -> Lists:
    """Replace the rows of points of a graph; see :meth:`tonari.KNNGraph.replace`."""
    request = _Request.of(lists, points, ids, call, recall, seed)
    new = _new_rows(rows, request)
    if not len(request.ids):
        return lists
    changed = _with_rows(request.rows, request.ids, new)
    stays = np.ones(lists.n, bool)
    stays[request.ids] = False
    with recording("replace", lists.n) as record:
        if request.recall is None and (whole := request.anew(changed, len(request.ids), record)) is not None:
            return whole
        distances, indices = (np.array(part) for part in request.others())
        descending = call.metric.descending
        if request.recall is not None:
            lost = np.full((len(request.ids), request.k), -1, indices.dtype)
            found = Neighbors(distances, indices)
            found.indices[request.ids] = lost
            if request.k:
                with part("lists of new rows", len(request.ids)), request.progress(len(request.ids)) as bar:
                    search_plainly(Points(changed, call), found, request.ids, bar)
            return request.refined(found, changed, record)
        last = Neighbors(distances[:, -1:].copy(), indices[:, -1:].copy()) if request.k else None
        number = np.append(np.where(stays, np.arange(lists.n), -1), -1).astype(indices.dtype)
        found, _ = _without_missing(Neighbors(distances, number[indices]), descending=descending)
        found.indices[request.ids] = -1
        if last is not None:
            with part("new rows up to the last entry of each list", lists.n - len(request.ids)):
                _enter(request, found, np.flatnonzero(stays), new, last)
            short = np.flatnonzero(stays & ~_are_complete(found, last, descending=descending))
            those, again = Points(changed, call), len(short) + len(request.ids)
            record.tried("lists up to their last entry", lists.n, lists.n - again)
            with part("lists that are searched", again), request.progress(again) as bar:
                search_again(those, found, short, bar)
                search_plainly(those, found, request.ids, bar)
        record.tried("lists that lost an entry, and lists of new rows", lists.n, lists.n - record.proved)
        return request.finished(found, changed, record)


def _numbers(ids: Any, n: int) -> tuple[Ids, Ids]:
    """Check row numbers; return them in ascending order, with the permutation that restores the caller's order."""
    inputs.refuse_masked(ids, "ids")
    array = np.atleast_1d(np.asarray(inputs.to_host(ids)))
    if array.size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        cure = "; the row numbers of a mask are numpy.flatnonzero(mask)" if array.dtype == bool else ""
        raise TypeError(f"ids: expected row numbers of shape (any,), got {array.dtype} of shape {array.shape}{cure}")
    bad = (array < 0) | (array >= n)
    if bad.any():
        raise ValueError(f"ids: {array[bad.argmax()]} is not a row of the graph, expected 0 to {n - 1}")
    order = np.argsort(array, kind="stable")
    numbers = array.astype(np.int64)[order]
    twice = numbers[1:][numbers[1:] == numbers[:-1]]
    if len(twice):
        raise ValueError(f"ids: {twice[0]} is given twice; name each point once")
    return numbers, np.argsort(order, kind="stable")


def _refuse_few(left: int, request: _Request) -> None:
    """Raise ValueError if the `left` points are too few for lists of the graph's length."""
    columns = left - (not request.lists.include_self)
    if request.lists.k > columns:
        cure = f"trim the graph before, as by graph.trim({columns})" if columns > 0 else "keep more points"
        raise ValueError(
            f"ids: {left} points would be left, but lists of k={request.lists.k} need "
            f"{request.lists.k + (not request.lists.include_self)}; {cure}"
        )


def _new_rows(rows: Any, request: _Request) -> Any:
    """Check the replacement rows, and return them in ascending order of their ids."""
    if not len(request.ids) and len(rows) == 0:
        return rows
    new = request.call.rows(rows, "rows")
    if isinstance(new, np.ndarray) != isinstance(request.rows, np.ndarray):
        raise ValueError("points and rows are on different devices, expected both in host memory or on one device")
    came, expected = (inputs.name_of_dtype(x) for x in (new, request.rows))
    shape = (len(request.ids), request.rows.shape[1])
    if tuple(new.shape) != shape or came != expected:
        raise ValueError(
            f"rows: {came} of shape {tuple(new.shape)}, expected {expected} of shape {shape}: one for each of ids"
        )
    return inputs.rows_at(new, np.argsort(request.order, kind="stable"))


def _with_rows(rows: Any, ids: Ids, new: Any) -> Any:
    """Return a copy of `rows` with the rows `ids` replaced by `new`."""
    if isinstance(rows, np.ndarray):
        changed = np.array(rows)
        changed[ids] = new
        return changed
    import torch

    changed = rows.clone()
    return changed.index_copy_(0, torch.from_numpy(ids).to(rows.device), new)


def _without_missing(found: Neighbors, *, descending: bool) -> tuple[Neighbors, Ids]:
    """Move missing entries (-1) to the end of each list; return all lists, and the row numbers of incomplete ones."""
    distances, indices = found
    short = np.flatnonzero((indices < 0).any(axis=1))
    for block in cut(len(short), max(1, tuning.READ_AT_ONCE // max(1, indices.shape[1]))):
        rows = short[block]
        order = np.argsort(indices[rows] < 0, axis=1, kind="stable")
        indices[rows] = np.take_along_axis(indices[rows], order, axis=1)
        values = np.take_along_axis(distances[rows], order, axis=1)
        values[indices[rows] < 0] = -np.inf if descending else np.inf
        distances[rows] = values
    return found, short


def _enter(request: _Request, found: Neighbors, kept: Ids, new: Any, last: Neighbors) -> None:
    """Insert the replaced points into the lists of the unchanged points `kept`.

    A replaced point enters a list if it precedes the list's last entry.
    """
    limits, metric = last.distances[kept, 0], request.call.metric
    near = nearest_within(Points(new, request.call), inputs.rows_at(request.rows, kept), limits, request.k)
    here = np.flatnonzero(near.indices[:, 0] >= 0)
    ids = np.where(near.indices[here] >= 0, request.ids[near.indices[here]], -1).astype(found.indices.dtype)
    parts = [Neighbors(*(part[kept[here]] for part in found)), Neighbors(near.distances[here], ids)]
    if len(here):
        merged = merge_neighbors(parts, (0, 0), k=request.k, metric=metric.name)
        found.distances[kept[here]], found.indices[kept[here]] = merged


def _are_complete(found: Neighbors, last: Neighbors, *, descending: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of the lists that are still exact: k entries, none of them after the list's old last entry."""
    value, before = found.distances[:, -1], last.distances[:, 0]
    nearer = value > before if descending else value < before
    equal = (value == before) & (found.indices[:, -1] <= last.indices[:, 0])
    complete: npt.NDArray[np.bool_] = (found.indices[:, -1] >= 0) & (nearer | equal)
    return complete
