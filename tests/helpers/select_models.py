"""Slow models of the queues and of Hierarchical Partition that count the same operations as the kernels.

An entry is (rank of its value among all values, index); a pad is larger than every entry. The rows [W i, W i + W) form
a group: a step has the entries that the lanes of a group compare at the same time, and aligned queues of a group merge
together. tang2015, sections III-B to III-E.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.select.request import Counters

Entry: TypeAlias = tuple[float, int]
Step: TypeAlias = dict[int, Entry]  # by lane
List: TypeAlias = list[Entry]

MODELS = ("insertion", "heap", "merge_queue", "hierarchical")

_PAD: Entry = (float("inf"), 2**31 - 1)


def run_model(
    method: str,
    values: npt.NDArray[Any],
    lengths: npt.NDArray[np.int64],
    options: Any,
    lanes: int,
    indices: npt.NDArray[np.int32],
    counters: Counters,
) -> None:
    """Select the smallest values by running a model.

    Parameters
    ----------
    values : array of shape (rows, n)
        The values; NaN is ordered last.
    lengths : int64 array of shape (rows,)
        The number of values in each row.
    options : the options record of the method
    lanes : int
        Rows per group.
    indices : int32 array of shape (rows, k)
        Output: the indices of each row's smallest values; if the row is shorter than k, further entries are unchanged.
    counters : Counters
        Output: all counts of the method.
    """
    k, n = indices.shape[1], values.shape[1]
    ranks = np.unique(values, return_inverse=True)[1]
    rows: list[List] = [
        [(int(rank), at) for at, rank in enumerate(row[:length])]
        for row, length in zip(ranks.reshape(values.shape), lengths, strict=True)
    ]
    groups = [rows[begin : begin + lanes] for begin in range(0, len(rows), lanes)]
    counters.examined = 0
    if method == "hierarchical":
        found = [_top_down(row, k, options, counters) for row in rows]
    else:
        counters.updates, counters.flushes, counters.lanes = np.zeros(_size(method, k, options), np.int64), 0, lanes
        counters.merges = 0 if method == "merge_queue" else None
        found = [entries for group in groups for entries in _queue_group(method, group, n, k, options, counters)]
    for row, entries in enumerate(found):
        best = [index for _, index in sorted(entries)[:k]]
        indices[row, : len(best)] = best


def _size(method: str, k: int, options: Any) -> int:
    """Return the capacity of a queue; a merge queue has a whole number of levels."""
    size = options.m if method == "merge_queue" else k
    while size < k:
        size *= 2
    return int(size)


class _InsertionQueues:
    """The queues of one group, each in descending order."""

    def __init__(self, size: int, lanes: int, counters: Counters) -> None:
        self.size, self.lanes = size, range(lanes)
        self.entries = [[_PAD] * size for _ in self.lanes]
        self.counters = counters

    def head(self, lane: int) -> Entry:
        return self.entries[lane][0]

    def take(self) -> list[List]:
        """Return the entries of all lanes and empty their queues."""
        taken = self.entries
        self.entries = [[_PAD] * self.size for _ in self.lanes]
        return taken

    def offer(self, step: Step, together: Iterable[int]) -> None:
        """Insert entries smaller than the heads of their queues; `together` are the lanes that run in lockstep."""
        for lane in [lane for lane in step if step[lane] < self.head(lane)]:
            self._insert(lane, step[lane])

    def _insert(self, lane: int, entry: Entry, size: int | None = None) -> None:
        """Insert into the first `size` positions: drop their head, and move larger entries one position forward."""
        at = 0
        while at + 1 < (size or self.size) and self.entries[lane][at + 1] > entry:
            self._write(lane, at, self.entries[lane][at + 1])
            at += 1
        self._write(lane, at, entry)

    def _write(self, lane: int, at: int, entry: Entry) -> None:
        self.entries[lane][at] = entry
        assert self.counters.updates is not None
        self.counters.updates[at] += 1


class _HeapQueues(_InsertionQueues):
    """Heaps with the largest entry at the root; the children of p are 2p + 1 and 2p + 2."""

    def _insert(self, lane: int, entry: Entry, size: int | None = None) -> None:
        heap, hole = self.entries[lane], 0
        while (children := range(2 * hole + 1, min(2 * hole + 3, self.size))) and max(
            heap[children[0] : children[-1] + 1]
        ) > entry:
            child = max(children, key=lambda place: (heap[place], -place))  # the left child if both are equal
            self._write(lane, hole, heap[child])
            hole = child
        self._write(lane, hole, entry)


class _MergeQueues(_InsertionQueues):
    """Levels [0, m) [m, 2m) [2m, 4m) ..., each descending, with descending heads (Algorithm 2)."""

    def __init__(self, size: int, lanes: int, counters: Counters, m: int, aligned: bool) -> None:
        super().__init__(size, lanes, counters)
        self.m, self.aligned = m, aligned

    def offer(self, step: Step, together: Iterable[int]) -> None:
        inserted = [lane for lane in step if step[lane] < self.head(lane)]
        for lane in inserted:
            self._insert(lane, step[lane], self.m)
        active = list(together) if self.aligned else inserted
        at, below = 0, self.m
        while below < self.size:
            broken = [lane for lane in active if self.entries[lane][at] < self.entries[lane][below]]
            if not broken:
                return
            active = active if self.aligned else broken
            for lane in active:
                self._merge(lane, below)
            at, below = below, 2 * below

    def _merge(self, lane: int, half: int) -> None:
        """Merge the first `half` positions with the next `half` by Reverse Bitonic Merge (Figure 2b)."""
        assert self.counters.merges is not None
        self.counters.merges += 1
        for at in range(half):
            self._descend(lane, at, 2 * half - 1 - at)
        distance = half // 2
        while distance:
            for at in range(2 * half):
                if not at & distance:
                    self._descend(lane, at, at + distance)
            distance //= 2

    def _descend(self, lane: int, left: int, right: int) -> None:
        pair = self.entries[lane][left], self.entries[lane][right]
        if pair[0] < pair[1]:
            self._write(lane, left, pair[1])
            self._write(lane, right, pair[0])


class _Buffers:
    """Buffered Search (III-D) in front of the queues of a group."""

    def __init__(self, queues: _InsertionQueues, options: Any, counters: Counters) -> None:
        self.queues, self.kind, self.size, self.counters = queues, options.buffer, options.buffer_size, counters
        self.held: list[List] = [[] for _ in queues.lanes]

    def look(self, step: Step) -> None:
        """Compare the entries of one step with the heads of their queues, and buffer or insert the smaller ones."""
        assert self.counters.examined is not None
        self.counters.examined += len(step)
        if self.kind == "none":
            self.queues.offer(step, self.queues.lanes)
            return
        for lane, entry in step.items():
            if entry < self.queues.head(lane):
                self.held[lane].append(entry)
        full = [lane for lane in self.queues.lanes if len(self.held[lane]) == self.size]
        if self.kind != "own" and full:
            self._empty(list(self.queues.lanes))
        elif self.kind == "own":
            for lane in full:
                self._empty([lane])

    def end(self) -> None:
        """Empty the buffers that still hold entries."""
        left = [lane for lane in self.queues.lanes if self.held[lane]]
        if self.kind == "own":
            for lane in left:
                self._empty([lane])
        elif left:
            self._empty(list(self.queues.lanes))

    def _empty(self, lanes: list[int]) -> None:
        assert self.counters.flushes is not None
        self.counters.flushes += 1
        for lane in lanes:
            if self.kind == "sorted":
                self.held[lane].sort()
        for at in range(max(len(self.held[lane]) for lane in lanes)):
            self.queues.offer({lane: self.held[lane][at] for lane in lanes if at < len(self.held[lane])}, lanes)
        for lane in lanes:
            self.held[lane] = []


def _queue_group(method: str, rows: list[List], n: int, k: int, options: Any, counters: Counters) -> list[List]:
    """Return the entries that the queues of one group hold at the end."""
    size = _size(method, k, options)
    if method == "merge_queue":
        queues: _InsertionQueues = _MergeQueues(size, len(rows), counters, options.m, options.aligned)
    else:
        queues = {"insertion": _InsertionQueues, "heap": _HeapQueues}[method](size, len(rows), counters)
    buffers = _Buffers(queues, options, counters)
    lists = [_lists(row, n, k, options.group, options.levels) for row in rows]
    for column in range(max(len(row[-1]) for row in lists)):
        buffers.look({lane: row[-1][column] for lane, row in enumerate(lists) if column < len(row[-1])})
    buffers.end()
    for level in range(len(lists[0]) - 2, -1, -1):
        taken = queues.take()
        for place in range(size):
            for member in range(options.group):
                step = {}
                for lane, row in enumerate(lists):
                    at = taken[lane][place][1] * options.group + member
                    if taken[lane][place] != _PAD and at < len(row[level]):
                        step[lane] = row[level][at]
                buffers.look(step)
        buffers.end()
    return [[entry for entry in entries if entry != _PAD] for entries in queues.take()]


def _lists(row: List, n: int, k: int, group: int | None, levels: int | None) -> list[List]:
    """Build the lists bottom-up (algorithm 4): the values, the minima of their groups, the minima of those minima,
    ...
    """
    lists, size = [row], n
    while group is not None and size > k and (levels is None or len(lists) <= levels):
        below, size = lists[-1], -(-size // group)
        groups = [below[begin : begin + group] for begin in range(0, len(below), group)]
        lists.append([(min(members)[0], at) for at, members in enumerate(groups)])
    return lists


def _top_down(row: List, k: int, options: Any, counters: Counters) -> List:
    """Search a row by Hierarchical Partition alone: the k best members of the k best groups, level by level."""
    lists = _lists(row, len(row), k, options.group, options.levels)
    best = sorted(lists[-1])[:k]
    assert counters.examined is not None
    counters.examined += len(lists[-1])
    for below in reversed(lists[:-1]):
        members = [entry for _, group in best for entry in below[group * options.group : (group + 1) * options.group]]
        counters.examined += len(members)
        best = sorted(members)[:k]
    return best
