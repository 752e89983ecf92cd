"""Rounds that compare every two slabs of consecutive rows once.

    graph-S          the graph of slab S
    inner-G          every two slabs of group G are compared, and each row keeps the nearest points found so far
    pair-R-A-B       in round R, every slab of group A is compared with every slab of group B
    rows-S           the final lists of slab S are written as rows of the result

The rounds form a tournament whose players are the groups: every two groups are compared once. In a round, each group is
in at most one pair, so the pairs of a round can run on several workers. The result of comparing two slabs depends on
their rows, their graphs, and their lists before the round. None of these change during a round, since each round writes
new lists. The result therefore depends neither on the worker that runs a task nor on whether a task is repeated.

Lists stay in memory while the slabs of two groups are compared, and the lists of a slab are written when it has been
compared with all slabs of the other group. With g slabs per group, g² comparisons write the lists of 2 g slabs: larger
groups write less, but a killed process loses more work. A group of one slab needs no comparisons within the group.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tonari.core.results.neighbors import Neighbors
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace
from tonari.shards.lists import empty_lists, in_range, lists_here, merge_into, shifted
from tonari.shards.loading import Arriving
from tonari.shards.plan import ShardPlan
from tonari.shards.tasks import Job, Stage, Step, Task, Worker, in_one_piece


class SlabPair(NamedTuple):
    """Two slabs whose rows are compared with each other.

    Attributes
    ----------
    slabs : pair of slices
        Their rows in the source.
    waiting : Arriving
        The rows of both slabs, concatenated.
    graphs : list of Neighbors
        The graph of each slab; its indices count from the slab's first row.
    kept : callable()
        Returns the lists of the rows of each slab before the round, with row numbers of the source.
    known
        Data about the two slabs that the route computed in advance.
    """

    slabs: tuple[slice, slice]
    waiting: Arriving
    graphs: list[Neighbors]
    kept: Callable[[], list[Neighbors]]
    known: Any


GraphOf = Callable[[Worker, int, Any], Neighbors]
Compare = Callable[[Worker, SlabPair], Neighbors]
Known = Callable[[Worker, slice, slice], Any]


def steps(graph_of: GraphOf, compare: Compare, known: Known) -> dict[str, Step]:
    """Return the steps of a route that compares slabs in rounds.

    Parameters
    ----------
    graph_of : callable(worker, slab, rows)
        Returns the lists of a slab's rows; they may be shorter than k.
    compare : callable(worker, pair)
        Returns the lists of the rows of both slabs, concatenated. A list contains neighbours in the other slab, as
        positions among the concatenated rows, and possibly other points.
    known : callable(worker, first, second)
        Computes data about two slabs in advance, while other slabs are compared.
    """

    def compute_shard(worker: Worker, args: tuple[int], waiting: Arriving) -> Neighbors:
        return lists_here(worker, graph_of(worker, args[0], waiting.arrive()))

    def compute_pair(worker: Worker, args: Any, pair: SlabPair) -> Neighbors:
        return shifted(worker, compare(worker, pair), *pair.slabs)

    def read_inner(worker: Worker, args: tuple[int]) -> Iterator[SlabPair]:
        for pair in _inner_pairs(worker.job, *args):
            yield slab_pair(worker, pair, lambda shard: _lists_of_graph(worker, shard))

    def read_pair(worker: Worker, args: tuple[int, int, int]) -> Iterator[SlabPair]:
        at, *both = args
        for pair in _pairs(worker.job, *both):
            yield slab_pair(worker, pair, lambda shard: _lists(worker, shard, at))

    def slab_pair(worker: Worker, pair: tuple[int, int], kept_of: Callable[[int], Neighbors]) -> SlabPair:
        first, second = (_slab(worker.job, shard) for shard in pair)
        waiting = worker.rows_of([first, second])
        graphs = [_load(worker, "graph", shard, 0, f"graph-{shard:06}") for shard in pair]
        kept = [functools.partial(kept_of, shard) for shard in pair]
        return SlabPair((first, second), waiting, graphs, lambda: [of() for of in kept], known(worker, first, second))

    return {
        "shard": in_one_piece(_read_shard, compute_shard, _write_shard),
        "inner": Step(read_inner, compute_pair, _write_inner),
        "pair": Step(read_pair, compute_pair, _write_pair),
        "rows": in_one_piece(_read_rows, _compute_rows, _write_rows),
    }


def rounds_of(players: int) -> list[list[tuple[int, int]]]:
    """Return the rounds of a tournament in which every two players meet once; a round is a list of pairs.

    >>> rounds_of(4)
    [[(0, 3), (1, 2)], [(0, 2), (1, 3)], [(0, 1), (2, 3)]]
    """
    ring: list[int | None] = [*range(players), *([None] if players % 2 else [])]
    made = []
    for _ in range(len(ring) - 1):
        pairs = zip(ring[: len(ring) // 2], reversed(ring[len(ring) // 2 :]), strict=True)
        made.append(sorted((min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None))
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return made


def groups_of(plan: ShardPlan) -> list[range]:
    """Return the slabs of each group; the sizes of groups differ by at most one slab."""
    count = -(-plan.shards // plan.group)
    return [range(plan.shards * at // count, plan.shards * (at + 1) // count) for at in range(count)]


def _parts(kind: str, shard: int, version: int) -> tuple[str, str]:
    """Return the names of the two parts that contain a slab's distances and indices after `version` rounds."""
    name = f"{kind}-{shard:06}-{version:06}"
    return f"{name}-distances", f"{name}-indices"


def _slab(job: Job, shard: int) -> slice:
    """Return the range of rows in a slab.

    The sizes of slabs differ by at most one row, because a short last slab could have fewer than k + 1 rows.
    """
    n, shards = job.source.n, job.plan.shards
    return slice(n * shard // shards, n * (shard + 1) // shards)


def _load(worker: Worker, kind: str, shard: int, version: int, by: str) -> Neighbors:
    return Neighbors(*(worker.job.files.load(name, by) for name in _parts(kind, shard, version)))


def _save(worker: Worker, kind: str, shard: int, version: int, found: Neighbors) -> dict[str, list[int]]:
    named = dict(zip(_parts(kind, shard, version), found, strict=True))
    return worker.job.files.save_all(named, worker.threads)


# --- graphs of slabs


def _read_shard(worker: Worker, args: tuple[int]) -> Arriving:
    return worker.rows_of([_slab(worker.job, args[0])])


def _write_shard(worker: Worker, args: tuple[int], found: Neighbors) -> Done:
    return Done(_save(worker, "graph", args[0], 0, found))


# --- comparisons of two slabs

_Pairs = list[tuple[int, int]]


def _inner_pairs(job: Job, group: int) -> _Pairs:
    return list(itertools.combinations(groups_of(job.plan)[group], 2))


def _pairs(job: Job, first: int, second: int) -> _Pairs:
    groups = groups_of(job.plan)
    return list(itertools.product(groups[first], groups[second]))


def _write_inner(worker: Worker, args: tuple[int], found: Iterator[Neighbors]) -> Done:
    pairs = _inner_pairs(worker.job, *args)
    return _write_compared(worker, pairs, 0, lambda shard: _lists_of_graph(worker, shard), found)


def _write_pair(worker: Worker, args: tuple[int, int, int], found: Iterator[Neighbors]) -> Done:
    at, *both = args
    pairs = _pairs(worker.job, *both)
    return _write_compared(worker, pairs, at + 1, lambda shard: _lists(worker, shard, at), found)


def _write_compared(
    worker: Worker, pairs: _Pairs, version: int, kept_of: Callable[[int], Neighbors], found: Iterator[Neighbors]
) -> Done:
    """Merge all results into copies of the slabs' lists; write a slab's lists after its last comparison."""
    left = Counter(itertools.chain.from_iterable(pairs))
    lists: dict[int, Neighbors] = {}
    parts: dict[str, list[int]] = {}
    for pair in pairs:
        both, begin = next(found), 0
        for shard in pair:
            if shard not in lists:
                lists[shard] = Neighbors(*map(np.array, kept_of(shard)))
            size = len(lists[shard].indices)
            here = Neighbors(*(part[begin : begin + size] for part in both))
            merge_into(worker, lists[shard], np.arange(size), here)
            begin += size
        del both, here
        left.subtract(pair)
        for shard in pair:
            if not left[shard]:
                parts |= _save(worker, "lists", shard, version, lists.pop(shard))
    return Done(parts)


def _lists_of_graph(worker: Worker, shard: int) -> Neighbors:
    """Return the lists of a slab's graph, padded to k columns, with row numbers of the source."""
    found, first = _load(worker, "graph", shard, 0, f"graph-{shard:06}"), _slab(worker.job, shard).start
    kept = empty_lists(worker, len(found.indices))
    indices = found.indices + np.where(found.indices < 0, 0, first).astype(kept.indices.dtype)
    merge_into(worker, kept, np.arange(len(indices)), Neighbors(found.distances, indices))
    return kept


def _lists(worker: Worker, shard: int, at: int) -> Neighbors:
    """Return the lists of a slab at the start of round `at`, with row numbers of the source."""
    groups = groups_of(worker.job.plan)
    group = next(number for number, shards in enumerate(groups) if shard in shards)
    rounds = rounds_of(len(groups))
    for version in range(at, 0, -1):
        for pair in rounds[version - 1]:
            if group in pair:
                return _load(worker, "lists", shard, version, _pair_name(version - 1, pair))
    if len(groups[group]) > 1:
        return _load(worker, "lists", shard, 0, _inner_name(group))
    return _lists_of_graph(worker, shard)


def _inner_name(group: int) -> str:
    return f"inner-{group:06}"


def _pair_name(at: int, pair: tuple[int, int]) -> str:
    return f"pair-{at:06}-{pair[0]:06}-{pair[1]:06}"


# --- rows


def _read_rows(worker: Worker, args: tuple[int]) -> Neighbors:
    rounds = rounds_of(len(groups_of(worker.job.plan)))
    return Neighbors(*map(np.array, _lists(worker, args[0], len(rounds))))


def _compute_rows(worker: Worker, args: tuple[int], found: Neighbors) -> Neighbors:
    return in_range(worker, _slab(worker.job, args[0]).start, found)


def _write_rows(worker: Worker, args: tuple[int], found: Neighbors) -> Done:
    return Done(rows=worker.job.files.write_rows(_slab(worker.job, args[0]).start, found, worker.threads))


def stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    """Yield the stages of a build, one after another."""
    shards, size, groups = plan.shards, 2 * plan.rows, groups_of(plan)
    yield Stage([Task(f"graph-{at:06}", "shard", (at,), plan.rows) for at in range(shards)])
    inner = {at: len(group) * (len(group) - 1) // 2 for at, group in enumerate(groups)}
    tasks = [Task(_inner_name(at), "inner", (at,), size * count) for at, count in inner.items() if count]
    if tasks:
        yield Stage(tasks)
    # versions of each group's lists that are on the disk
    last = {group: [0] if inner[group] else [] for group in inner}
    for at, pairs in enumerate(rounds_of(len(groups))):
        compared = [group for pair in pairs for group in pair]
        older = [name for group in compared for name in _list_parts_of(groups[group], last[group])]
        comparisons = {pair: len(groups[pair[0]]) * len(groups[pair[1]]) for pair in pairs}
        yield Stage(
            [Task(_pair_name(at, pair), "pair", (at, *pair), size * comparisons[pair]) for pair in pairs],
            drops=tuple(older),
        )
        last |= {group: [at + 1] for group in compared}
    graphs = [name for shard in range(shards) for name in _parts("graph", shard, 0)]
    lists = [name for at, group in enumerate(groups) for name in _list_parts_of(group, last[at])]
    yield Stage(
        [Task(f"rows-{at:06}", "rows", (at,)) for at in range(shards)],
        drops=(*lists, *graphs),
    )


def _list_parts_of(shards: range, versions: list[int]) -> list[str]:
    """Return the names of all parts that contain neighbour lists of a group's slabs, in any of the `versions`."""
    return [name for version in versions for shard in shards for name in _parts("lists", shard, version)]
