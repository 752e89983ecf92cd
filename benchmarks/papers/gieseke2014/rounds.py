"""gieseke2014's LazyParallelNN on the same tree: rounds over queues and buffers, for one comparison.

Algorithm 1 of the paper. A round takes query indices from the queues and finds for each the next leaf of its own
traversal (FindLeafBatch, with an explicit stack a query); they wait in that leaf's buffer until some buffer is half
full, then all buffers are emptied (ProcessAllBuffers): the queries of a leaf are compared with its points as one
dense tile, their k best are merged, and they go back into a queue. The few that are left at last are compared with
everything.

Written in torch, alike for processors and GPUs: whole arrays at a time, of which each step passes through memory. That
is in its time, and is the shape of the thing: between rounds a query's stack and k best are in memory, not in
registers. Distances are float32 sums of squared differences, not refined: recall is by true distances.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ...harness.case import Case
from ...harness.contest import Ours
from ...harness.device import Timing
from ...harness.proof.neighbors import PROOF
from ...harness.rows import merged
from ...harness.run import Run
from ...suites.kdtree.search import (
    EXACT,
    TREE,
    Planned,
    clocked,
    data_of,
    index_of,
    proof_of,
    proved,
    searcher,
    speed,
    write_rows,
)

# The paper's B is 2**(22 - height) for its ten million queries: 0.42 m queries over all leaves. Of fewer queries that
# would be less than a tile: B is at least two tiles.
BUFFER_SHARE = 2**22 / 1e7
# Part of the queries that a round of buffers takes.
BATCH_SHARE = 10
# Queries of a tile, and distances worked on at once.
TILE = {"cpu": 16, "cuda": 64}
BLOCK = {"cpu": 1 << 18, "cuda": 1 << 27}
# Share of the queries that is left to brute force.
FEW = 1e-3
# The paper's height is 8; a processor would be at it for minutes.
HEIGHTS = {"cpu": (11, 13), "cuda": (8, 11, 14)}
# Seconds of a search beyond which it is not timed again.
ENOUGH = 5.0


@dataclass
class Counters:
    """What a search by rounds did; seconds are only told apart on a processor."""

    rounds: int = 0
    emptied: int = 0
    leaves: int = 0
    tiles: int = 0
    brute: int = 0
    find_seconds: float = 0.0
    process_seconds: float = 0.0


@dataclass
class Rounds:
    """A tree on a device of torch, searched by rounds.

    Attributes
    ----------
    tree : record of :mod:`tonari.kdtree.cpu.tree`
    batch : M, queries taken from the queues in a round
    buffer : B; buffers are emptied when one is half full. 1: in every round
    few : how many queries are left to brute force
    """

    tree: Any
    where: str
    k: int
    batch: int
    buffer: int
    few: int = 0
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        import torch

        tree = self.tree
        leaves, d, capacity = tree.rows.shape
        self._rows = torch.from_numpy(tree.rows).to(self.where)
        begins = torch.from_numpy(tree.begins)
        place = begins[:-1, None] + torch.arange(capacity)
        ids = torch.from_numpy(tree.ids).long()
        padded = torch.where(place < begins[1:, None], ids[place.clamp(max=tree.n - 1)], -1)
        self._ids = padded.to(self.where)
        # Tight boxes of leaves, from nodes of 16 children: (nodes, d, 2, 16).
        boxes = torch.from_numpy(tree.boxes[0]).permute(0, 3, 2, 1).reshape(-1, 2, d)[:leaves]
        self._low, self._high = (boxes[:, side].contiguous().to(self.where) for side in (0, 1))
        self._dimensions = torch.from_numpy(tree.split_dimensions).long().to(self.where)
        self._values = torch.from_numpy(tree.split_values).to(self.where)
        self._first_leaf = leaves - 1
        kind = self._rows.device.type
        self._tile, self._block = TILE[kind], BLOCK[kind]

    def search(self, queries: Any) -> tuple[Any, Any]:
        """Squared distances and indices (m, k), nearest first."""
        import torch

        m, where = len(queries), self.where
        self.counters = Counters()
        self._queries = queries
        self._best = torch.full((m, self.k), torch.inf, device=where)
        self._found = torch.full((m, self.k), -1, dtype=torch.int64, device=where)
        # The root waits on every stack.
        self._nodes = torch.zeros((m, self.tree.height + 2), dtype=torch.int64, device=where)
        self._bounds = torch.zeros((m, self.tree.height + 2), device=where)
        self._depths = torch.ones(m, dtype=torch.int64, device=where)
        nothing = torch.empty(0, dtype=torch.int64, device=where)
        came, again = 0, nothing
        waiting, at = nothing, nothing
        while True:
            if came == m and len(again) + len(waiting) <= self.few:
                self._compare_with_all(torch.cat([again, waiting]))
                return self._best, self._found
            taken, again = again[: self.batch], again[self.batch :]
            if not len(taken) and came < m:
                taken = torch.arange(came, min(m, came + self.batch), device=where)
                came += len(taken)
            started = time.perf_counter()
            leaves = self._find_leaves(taken)
            self.counters.find_seconds += time.perf_counter() - started
            goes_on = leaves >= 0
            waiting = torch.cat([waiting, taken[goes_on]])
            at = torch.cat([at, leaves[goes_on]])
            self.counters.rounds += 1
            full = len(at) and int(torch.bincount(at).max()) * 2 >= self.buffer
            if full or (not len(again) and came == m):
                started = time.perf_counter()
                self._process(waiting, at)
                self.counters.process_seconds += time.perf_counter() - started
                again = torch.cat([again, waiting])
                waiting, at = nothing, nothing

    def _find_leaves(self, taken: Any) -> Any:
        """FindLeafBatch: the next leaf of each query, or -1 where its traversal is over."""
        import torch

        leaves = torch.full_like(taken, -1)
        places = torch.arange(len(taken), device=taken.device)
        while len(places):
            q = taken[places]
            alive = self._depths[q] > 0
            q, places = q[alive], places[alive]
            depth = self._depths[q] - 1
            self._depths[q] = depth
            node, bound = self._nodes[q, depth], self._bounds[q, depth]
            limit = self._best[q, -1]
            inner = (bound <= limit) & (node < self._first_leaf)
            leaf = torch.where(bound <= limit, node - self._first_leaf, -1)
            at_leaf = (leaf >= 0).nonzero()[:, 0]
            ends = torch.zeros_like(inner)
            if len(at_leaf):
                which, asked = leaf[at_leaf], self._queries[q[at_leaf]]
                gap = torch.maximum(self._low[which] - asked, asked - self._high[which]).clamp_(min=0)
                ends[at_leaf] = gap.square_().sum(dim=1) <= limit[at_leaf]
                leaves[places[ends]] = leaf[ends]
            # The far child waits below the near one.
            inside = q[inner]
            if len(inside):
                here, depth, bound = node[inner], depth[inner], bound[inner]
                offset = self._queries[inside, self._dimensions[here]] - self._values[here]
                right = (offset >= 0).long()
                self._nodes[inside, depth], self._nodes[inside, depth + 1] = 2 * here + 2 - right, 2 * here + 1 + right
                self._bounds[inside, depth] = torch.maximum(bound, offset.square_())
                self._bounds[inside, depth + 1] = bound
                self._depths[inside] = depth + 2
            places = places[~ends]
        return leaves

    def _process(self, waiting: Any, at: Any) -> None:
        """ProcessAllBuffers: leaf by leaf in tiles of queries that share it."""
        import torch

        self.counters.emptied += 1
        self.counters.leaves += len(waiting)
        at, order = at.sort(stable=True)
        waiting = waiting[order]
        which, counts = torch.unique_consecutive(at, return_counts=True)
        tile = self._tile
        tiles_of = (counts + tile - 1) // tile
        first_tile, first_query = (counted.cumsum(0) - counted for counted in (tiles_of, counts))
        group = torch.repeat_interleave(torch.arange(len(which), device=at.device), counts)
        inside = torch.arange(len(at), device=at.device) - first_query[group]
        slot = (first_tile[group] + inside // tile) * tile + inside % tile
        tiles = int(tiles_of.sum()) if len(which) else 0
        table = torch.full((tiles * tile,), -1, dtype=torch.int64, device=at.device)
        table[slot] = waiting
        leaf_of = torch.repeat_interleave(which, tiles_of)
        self.counters.tiles += tiles
        step = max(1, self._block // (tile * self._rows.shape[2]))
        for start in range(0, tiles, step):
            stop = min(tiles, start + step)
            self._compare(table[start * tile : stop * tile].view(-1, tile), leaf_of[start:stop])

    def _compare(self, table: Any, leaf_of: Any) -> None:
        squares = self._squares(self._queries[table.clamp(min=0)], self._rows[leaf_of])
        limit = self._best[table.clamp(min=0), -1]
        better = (squares.amin(dim=2) < limit) & (table >= 0)
        tile, row = better.nonzero(as_tuple=True)
        if len(tile):
            self._merge(table[tile, row], squares[tile, row], self._ids[leaf_of[tile]])

    @staticmethod
    def _squares(queries: Any, points: Any) -> Any:
        """(tiles, queries, points) from (tiles, queries, d) and (tiles, d, points)."""
        difference = queries[:, :, 0, None] - points[:, 0, None, :]
        total = difference * difference
        for i in range(1, queries.shape[2]):
            difference = queries[:, :, i, None] - points[:, i, None, :]
            total.addcmul_(difference, difference)
        return total

    def _merge(self, asked: Any, squares: Any, ids: Any) -> None:
        import torch

        least = squares.topk(min(self.k, squares.shape[1]), dim=1, largest=False)
        values = torch.cat([self._best[asked], least.values], dim=1)
        found = torch.cat([self._found[asked], ids.gather(1, least.indices)], dim=1)
        best = values.topk(self.k, dim=1, largest=False)
        self._best[asked], self._found[asked] = best.values, found.gather(1, best.indices)

    def _compare_with_all(self, asked: Any) -> None:
        """The paper's last step for the queries that are left: they forget what they have found."""
        import torch

        self.counters.brute += len(asked)
        if not len(asked):
            return
        self._best[asked], self._found[asked] = torch.inf, -1
        step = max(1, self._block // (len(asked) * self._rows.shape[2]))
        for start in range(0, len(self._rows), step):
            rows, ids = self._rows[start : start + step], self._ids[start : start + step]
            squares = self._squares(self._queries[asked].expand(len(rows), -1, -1), rows)
            squares = squares.permute(1, 0, 2).reshape(len(asked), -1)
            self._merge(asked, squares, ids.reshape(1, -1).expand(len(asked), -1))


class Answered:
    """What a search by rounds found, as our verbs would return it."""

    def __init__(self, squares: Any, indices: Any) -> None:
        import torch

        self.distances, self.indices = squares.sqrt(), indices.to(torch.int32)


def record_of(run: Run, points: Any, height: int) -> Any:
    """The tree's record, in host memory."""
    from tonari.core.workers import Workers
    from tonari.kdtree.cpu.build import build

    return build(points.cpu().numpy(), height=height, double=False, workers=Workers(run.threads or 8))


def compare(run: Run, case: Case) -> None:
    """Rounds with buffers, and with all queries sorted in every round, beside depth-first search by the same tree."""
    data = data_of(run, case)
    found = proved(run, case, data)
    depth_first = [Ours(run, TREE, searcher(run, case, data, found.index), case.m, case.m)]
    unsorted = Planned(run, case, data, sort=False)
    depth_first.append(Ours(run, f"{TREE}, as they came", unsorted.call(case.m, case.k), case.m, case.m))
    depth_first.append(Ours(run, EXACT, searcher(run, case, data, index_of(run, data, "exact")), case.m, case.m))
    timings, _ = clocked(run, case, data, depth_first, found.answer)
    write_rows(run, case, found.facts, depth_first, timings, {})
    for height in HEIGHTS[run.device.kind]:
        if case.n >> height < 1:
            continue
        record = record_of(run, data.points, height)
        buffer = max(2 * TILE[run.device.kind], round(BUFFER_SHARE * case.m / 2**height))
        for who, batch, size in (
            ("rounds, buffers", max(1, case.m // BATCH_SHARE), buffer),
            ("rounds, sorted each", case.m, 1),
        ):
            search = Rounds(record, run.where, case.k, batch, size, int(FEW * case.m))
            run.guarded(case, who, lambda who=who, search=search: one_way(run, case, data, search, who, timings))


def one_way(run: Run, case: Case, data: Any, search: Rounds, who: str, timings: dict[str, Any]) -> None:
    """A row about rounds of some kind."""
    answers: list[Answered] = []
    first = run.time_once(lambda: answers.append(Answered(*search.search(data.queries))))
    recall, seen = proof_of(run, case, data).recall(answers[0].indices, case.k)
    again = first <= ENOUGH
    timing = run.time(lambda: search.search(data.queries)) if again else Timing(first, first, first, 1)
    counted = search.counters
    # On a GPU the host does not wait at the end of each part.
    shares = "" if run.cuda else f", finding leaves {counted.find_seconds:.3g} s, tiles {counted.process_seconds:.3g} s"
    fill = counted.leaves / max(1, counted.tiles)
    note = f"M={search.batch} B={search.buffer}: {counted.rounds} rounds, buffers emptied {counted.emptied} times"
    note += f", {fill:.1f} queries a tile of {TILE[run.device.kind]}, {counted.brute} by brute force{shares}"
    facts = {"who": who, "stage": "search", "proof": PROOF, "proved": seen, "recall": recall, "note": note}
    facts["ratio"] = timing.median / timings[TREE].median
    height = search.tree.height
    facts["extras"] = {"height": height, "leaf": -(-case.n >> height), "leaves": counted.leaves / case.m}
    run.write(case, [merged(facts, speed(case, timing))])
