"""The buffered traversal on one CUDA device: the rounds of gieseke2014 (algorithm 1).

A query waits in `order` (the paper's queue "input"), in `again` (its queue "reinsert"), or in the buffer of a leaf. The
queries in all buffers are in one list, which is sorted by leaf when the buffers are emptied. As in the paper (section
3.3), the host only moves indices between the queues and launches one kernel per phase.

The last few queries would take many more rounds, one for each leaf that is left to the query with the most leaves. The
paper answers these queries by brute force. Here the walk answers them in one launch, because the launches and waits of
a round take as long as WALKED_ALONE queries take to walk through one leaf.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tonari.core.process.progress import Counter
from tonari.cuda.launch import launch
from tonari.kdtree import tuning
from tonari.kdtree.cuda.search import LISTS, TreeSearch, boxes_of, leaves_of, nodes_of, walk
from tonari.kdtree.cuda.tree import BLOCK, MOST_LEVELS, WIDTH
from tonari.kdtree.papers.rounds import Rounds
from tonari.metrics import get_metric

BATCH = 5  # queries per round, as a multiple of the size of a buffer (section 4.2)
TILE = 16  # maximum number of queries that one program compares with the points of a leaf
_NO_LIMIT = 0x7F61B1E6 | (WIDTH - 1)  # the initial limit, as in the walk: the bits of 3e38


class _State(NamedTuple):
    """The state of all queries between rounds: the neighbours found so far, in `search`, the limits and the stacks."""

    search: TreeSearch
    limits: Any
    stacks: Any


def search_by_rounds(
    search: TreeSearch,
    order: Any,
    *,
    buffer: int,
    check: Callable[[], None],
    bar: Counter,
    rounds: Rounds | None = None,
) -> None:
    """Find the k nearest points of the queries listed in `order`, in rounds.

    Parameters
    ----------
    search, order
        As for :func:`tonari.kdtree.cuda.search.walk`.
    buffer : int
        The paper's B: all buffers are emptied when one of them has B / 2 queries.
    check : callable
        Called before every round; may raise an error to end the search.
    bar : Counter
        Counts queries.
    rounds : Rounds, optional
        Output: the counters. If they are requested, the host waits for the device after each phase, to measure its
        duration.
    """
    queries, tree, found = search.queries, search.tree, search.found
    device, m = queries.device, len(order)
    state = _State(
        search,
        torch.full((len(queries),), _NO_LIMIT, dtype=torch.int32, device=device),
        torch.full((len(queries), MOST_LEVELS), -1, dtype=torch.int32, device=device),
    )
    found.distances.fill_(float("inf"))
    found.indices.fill_(-1)
    phases = _Phases(rounds, device)
    lengths = torch.zeros(len(tree.ids) // tree.leaf, dtype=torch.int64, device=device)
    again, waiting, leaves = order[:0], order[:0], torch.empty(0, dtype=torch.int32, device=device)
    came = 0
    few = max(m // tuning.WALKED_SHARE, tuning.WALKED_ALONE)
    while m - came + len(again) + len(waiting) > few:
        check()
        if len(again):
            batch, again = again[: BATCH * buffer], again[BATCH * buffer :]
        else:
            batch = order[came : came + BATCH * buffer]
            came += len(batch)
        with phases.time("find_seconds"):
            at = _next_leaves(batch, state)
            goes_on = at >= 0
            moved, at = batch[goes_on], at[goes_on]
            lengths += torch.bincount(at, minlength=len(lengths))
        bar.add(len(batch) - len(moved))
        waiting, leaves = torch.cat([waiting, moved]), torch.cat([leaves, at])
        full = 2 * len(waiting) >= buffer and 2 * int(lengths.max()) >= buffer
        emptied = len(waiting) > 0 and (full or (came == m and not len(again)))
        phases.count(rounds=1, emptied=int(emptied), full=int(full))
        if emptied:
            with phases.time("sort_seconds"):
                leaves, by_leaf = torch.sort(leaves, stable=True)
                waiting, tiles = waiting[by_leaf], cut_tiles(leaves)
            with phases.time("process_seconds"):
                _process(waiting, tiles, state)
            phases.count(tiles=len(tiles.begins), compared=len(waiting))
            again, waiting, leaves = torch.cat([again, waiting]), waiting[:0], leaves[:0]
            lengths.zero_()
    left = torch.cat([again, waiting, order[came:]])
    walk(search, left)
    phases.count(walked=len(left))
    bar.add(len(left))


def rehearse_rounds(search: TreeSearch, order: Any, *, buffer: int) -> None:
    """Launch each kernel of :func:`search_by_rounds` and the final walk once, on the device "meta"."""
    m = len(order)
    limits, stacks = (torch.empty((m, width), dtype=torch.int32, device="meta") for width in (1, MOST_LEVELS))
    state = _State(search, limits, stacks)
    batch = order[: BATCH * buffer]
    if m > max(m // tuning.WALKED_SHARE, tuning.WALKED_ALONE):
        leaves = _next_leaves(batch, state)
        begins = torch.empty(len(batch), dtype=torch.int64, device="meta")
        _process(batch, Tiles(begins, begins, leaves), state)
    walk(search, order)


def _next_leaves(queue: Any, state: _State) -> Any:
    """Return the next leaf that each query in a queue needs: int32 tensor, -1 for finished queries."""
    from tonari.kdtree.papers.cuda.kernels.find_leaf import find_leaf_kernel

    search, tree = state.search, state.search.tree
    leaves = torch.empty(len(queue), dtype=torch.int32, device=queue.device)
    launch(
        find_leaf_kernel,
        len(queue),
        {
            "queries_ptr": search.queries,
            "queue_ptr": queue,
            "limits_ptr": state.limits,
            "stacks_ptr": state.stacks,
            "leaves_ptr": leaves,
            **boxes_of(tree),
        },
        constants={**nodes_of(tree, search.metric), "LEVELS": MOST_LEVELS},
        warps=1,
        fused=False,
    )
    return leaves


def _process(queue: Any, tiles: Tiles, state: _State) -> None:
    """Compare the waiting queries, sorted by leaf in `queue`, with the points of their leaves."""
    from tonari.kdtree.papers.cuda.kernels.process_buffers import process_kernel

    search, tree, k = state.search, state.search.tree, state.search.k
    launch(
        process_kernel,
        len(tiles.begins),
        {
            "queries_ptr": search.queries,
            "own_ptr": search.own,
            "queue_ptr": queue,
            "begins_ptr": tiles.begins,
            "counts_ptr": tiles.counts,
            "leaves_ptr": tiles.leaves,
            "distances_ptr": search.found.distances,
            "indices_ptr": search.found.indices,
            "limits_ptr": state.limits,
            "k": k,
            **leaves_of(tree),
        },
        constants={
            "D": tree.d,
            "METRIC": get_metric(search.metric),
            "DOUBLE": tree.rows.dtype == torch.float64,
            "BLOCK": BLOCK,
            "LIST": next(size for size in LISTS if k <= size),
            "WIDTH": WIDTH,
            "TILE": TILE,
            "HAS_OWN": search.own is not None,
        },
        warps=1,
        fused=False,
    )


class Tiles(NamedTuple):
    """Tiles of a sorted queue: runs of up to TILE queries that need the same leaf.

    The three tensors have, for each run, the position of its first query, the count of its queries, and its leaf.
    """

    begins: Any
    counts: Any
    leaves: Any


def cut_tiles(leaves: Any) -> Tiles:
    """Cut a queue into tiles, given the leaf of every query in ascending order.

    >>> [part.tolist() for part in cut_tiles(torch.tensor([3] * 20 + [7] * 2))]
    [[0, 16, 20], [16, 4, 2], [3, 3, 7]]
    """
    which, queries = torch.unique_consecutive(leaves, return_counts=True)
    tiles = (queries + TILE - 1) // TILE
    ends = tiles.cumsum(0)
    total = int(ends[-1])
    group = torch.repeat_interleave(tiles, output_size=total)
    skipped = (torch.arange(total, device=leaves.device) - (ends - tiles)[group]) * TILE
    begins = (queries.cumsum(0) - queries)[group] + skipped
    return Tiles(begins, (queries[group] - skipped).clamp(max=TILE), which[group])


class _Phases:
    """Counts and measures the phases of a round if counters are requested; otherwise does nothing."""

    def __init__(self, rounds: Rounds | None, device: Any) -> None:
        self._rounds, self._device = rounds, device

    def count(self, **counted: int) -> None:
        if self._rounds is not None:
            self._rounds.add(**counted)

    def time(self, phase: str) -> _Clock:
        return _Clock(self._rounds, self._device, phase)


class _Clock:
    """A context that adds the duration of a phase to the counters."""

    def __init__(self, rounds: Rounds | None, device: Any, phase: str) -> None:
        self._rounds, self._device, self._phase = rounds, device, phase
        self._begin = 0.0

    def __enter__(self) -> None:
        if self._rounds is not None:
            self._wait()
            self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if self._rounds is not None:
            self._wait()
            self._rounds.add(**{self._phase: time.perf_counter() - self._begin})

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
