"""Slabs of consecutive rows, of which every two meet once.

    graph-S          the graph of a slab
    pair-R-A-B       round R: two slabs meet, and each row keeps the nearest of all that it met
    rows-S           the lists of a slab, as rows of the result

The rounds are those of a tournament in which every two players meet once: in a round each slab is in one pair at most,
so its pairs run on several workers. What a pair finds depends on the rows, the graphs and the lists of its two slabs.
These do not change during a round, and a round leaves lists of its own; so the result does not depend on what ran
where, or on a round that was repeated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tonari.core.neighbors import Neighbors, index_dtype
from tonari.shards.common import empty_lists, in_host_memory, merge_into, shifted
from tonari.shards.loading import Arriving
from tonari.shards.plan import ShardPlan
from tonari.shards.tasks import Job, Stage, Step, Task, Worker
from tonari.shards.workspace import Done, Workspace

GraphOf = Callable[[Worker, int, Any], Neighbors]
Met = Callable[[Worker, Any, list[Neighbors], list[Neighbors]], Neighbors]
Merged = Callable[[], list[Neighbors]]


def steps(graph_of: GraphOf, met: Met) -> dict[str, Step]:
    """Return the steps of a route.

    Parameters
    ----------
    graph_of : callable(worker, slab, rows)
        Returns the lists of a slab's rows; they may be shorter than k.
    met : callable(worker, rows, graphs, kept)
        Returns lists of the rows of two slabs, one after the other, with those that they find in the other slab, by
        their places in `rows`, and possibly others. `graphs` are those of the two, `kept` what their rows met so far.
    """

    def compute_shard(worker: Worker, args: tuple[int], waiting: Arriving) -> Neighbors:
        return graph_of(worker, args[0], waiting.arrive())

    def compute_pair(worker: Worker, args: tuple[int, int, int], read: Any) -> Merged:
        waiting, graphs, kept = read
        found = _numbered(worker, args, met(worker, waiting.arrive(), graphs, kept))
        if worker.place.devices:  # which computes the next pair while lists in host memory are merged
            return functools.partial(_merged, worker, args, found, kept)
        made = _merged(worker, args, found, kept)
        return lambda: made

    return {
        "shard": Step(_read_shard, compute_shard, _write_shard),
        "pair": Step(_read_pair, compute_pair, _write_pair),
        "rows": Step(_read_rows, lambda worker, args, found: found, _write_rows),
    }


def rounds_of(shards: int) -> list[list[tuple[int, int]]]:
    """Return the rounds of a tournament in which every two of the shards meet once.

    >>> rounds_of(4)
    [[(0, 3), (1, 2)], [(0, 2), (1, 3)], [(0, 1), (2, 3)]]
    """
    ring: list[int | None] = [*range(shards), *([None] if shards % 2 else [])]
    made = []
    for _ in range(len(ring) - 1):
        pairs = zip(ring[: len(ring) // 2], reversed(ring[len(ring) // 2 :]), strict=True)
        made.append(sorted((min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None))
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return made


def _parts(kind: str, shard: int, version: int) -> tuple[str, str]:
    """Return the names of the distances and indices of a shard after a number of rounds."""
    name = f"{kind}-{shard:06}-{version:06}"
    return f"{name}-distances", f"{name}-indices"


def _slab(job: Job, shard: int) -> slice:
    """Return the rows of a shard. All have the same number, to one row: a remainder could have fewer than k + 1."""
    n, shards = job.source.n, job.plan.shards
    return slice(n * shard // shards, n * (shard + 1) // shards)


def _load(worker: Worker, kind: str, shard: int, version: int, by: str) -> Neighbors:
    return Neighbors(*(worker.job.files.load(name, by) for name in _parts(kind, shard, version)))


def _save(worker: Worker, kind: str, shard: int, version: int, found: Neighbors) -> dict[str, list[int]]:
    named = zip(_parts(kind, shard, version), found, strict=True)
    return {name: worker.job.files.save(name, part) for name, part in named}


# --- shards


def _read_shard(worker: Worker, args: tuple[int]) -> Arriving:
    return worker.rows_of([_slab(worker.job, args[0])])


def _write_shard(worker: Worker, args: tuple[int], found: Neighbors) -> Done:
    return Done(_save(worker, "graph", args[0], 0, Neighbors(*map(in_host_memory, found))))


# --- pairs


def _read_pair(worker: Worker, args: tuple[int, int, int]) -> tuple[Arriving, list[Neighbors], list[Neighbors]]:
    """Read the rows of two shards into one array, their graphs, and what their rows met so far."""
    at, *both = args
    slabs = [_slab(worker.job, shard) for shard in both]
    waiting = worker.rows_of(slabs)
    graphs = [_load(worker, "graph", shard, 0, f"graph-{shard:06}") for shard in both]
    return waiting, graphs, [_lists(worker, shard, at) for shard in both]


def _lists(worker: Worker, shard: int, at: int) -> Neighbors:
    """Return the lists of a shard before a round, as numbers of the source."""
    for version in range(at, 0, -1):
        for pair in rounds_of(worker.job.plan.shards)[version - 1]:
            if shard in pair:
                return _load(worker, "lists", shard, version, _pair_name(version - 1, pair))
    return _as_rows(worker, _load(worker, "graph", shard, 0, f"graph-{shard:06}"), _slab(worker.job, shard).start)


def _as_rows(worker: Worker, found: Neighbors, first: int) -> Neighbors:
    """Return lists with `first` added to their numbers, and k columns."""
    kept = empty_lists(worker, len(found.indices))
    indices = found.indices + np.where(found.indices < 0, 0, first).astype(kept.indices.dtype)
    merge_into(worker, kept, np.arange(len(indices)), Neighbors(found.distances, indices))
    return kept


def _numbered(worker: Worker, args: tuple[int, int, int], found: Neighbors) -> Neighbors:
    """Return lists of the rows of two slabs in host memory, with the numbers that their points have in the source."""
    first, second = (_slab(worker.job, shard) for shard in args[1:])
    return shifted(found, index_dtype(worker.job.source.n), first.start, first.stop - first.start, second.start)


def _merged(worker: Worker, args: tuple[int, int, int], found: Neighbors, kept: list[Neighbors]) -> list[Neighbors]:
    """Merge what two slabs found into copies of their lists."""
    made, size = [], len(kept[0].indices)
    for here, old in zip((slice(0, size), slice(size, None)), kept, strict=True):
        new = Neighbors(*map(np.array, old))
        merge_into(worker, new, np.arange(len(new.indices)), Neighbors(*(part[here] for part in found)))
        made.append(new)
    return made


def _write_pair(worker: Worker, args: tuple[int, int, int], merged: Merged) -> Done:
    at, *both = args
    parts: dict[str, list[int]] = {}
    for shard, found in zip(both, merged(), strict=True):
        parts |= _save(worker, "lists", shard, at + 1, found)
    return Done(parts)


def _pair_name(at: int, pair: tuple[int, int]) -> str:
    return f"pair-{at:06}-{pair[0]:06}-{pair[1]:06}"


# --- rows


def _read_rows(worker: Worker, args: tuple[int]) -> Neighbors:
    found = _lists(worker, args[0], len(rounds_of(worker.job.plan.shards)))
    return Neighbors(*map(np.array, found))


def _write_rows(worker: Worker, args: tuple[int], found: Neighbors) -> Done:
    return Done(rows=worker.job.files.write_rows(_slab(worker.job, args[0]).start, found))


def stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    """Yield the stages of a build."""
    shards, size = plan.shards, plan.rows
    yield Stage([Task(f"graph-{at:06}", "shard", (at,), size) for at in range(shards)])
    rounds = rounds_of(shards)
    for at, pairs in enumerate(rounds):
        met = [shard for pair in pairs for shard in pair]
        older = (_parts("lists", shard, before) for shard in met for before in _versions(rounds, shard, at)[-1:])
        yield Stage(
            [Task(_pair_name(at, pair), "pair", (at, *pair), 2 * size) for pair in pairs],
            drops=tuple(name for names in older for name in names),
        )
    last = [
        _parts("lists", shard, made) for shard in range(shards) for made in _versions(rounds, shard, len(rounds))[-1:]
    ]
    graphs = [_parts("graph", shard, 0) for shard in range(shards)]
    yield Stage(
        [Task(f"rows-{at:06}", "rows", (at,)) for at in range(shards)],
        drops=tuple(name for names in (*last, *graphs) for name in names),
    )


def _versions(rounds: list[list[tuple[int, int]]], shard: int, before: int) -> list[int]:
    """Return the versions of a shard's lists that rounds before this one made."""
    return [at + 1 for at in range(before) if any(shard in pair for pair in rounds[at])]
