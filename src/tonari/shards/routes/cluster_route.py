"""Overlapping shards of near rows: the graph of each shard is built separately, then the lists of a row are merged.

    means           k-means, and the near centres of many rows (cluster_centres.py)
    sample          the rows of two samples
    truth-P         the true neighbours of the samples in range P of all rows
    centres         shards of near centres, and their overlap, chosen by one sample (dealing.py)
    members-B       the rows of block B that belong to each shard
    shard-S         the graph of shard S, with a part for each segment; a device reads several shards in one pass
    rows-B          the lists of the rows in block B, merged over all shards that contain them; when all blocks of a
                    segment are done, the parts of the shards for this segment are removed
    recall          measured on the other sample, since the overlap was fitted to the first one

Rows without a common shard are never compared, so neighbours may be missed. The share of missed neighbours is estimated
before the first shard is built, and measured at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.draws import Purpose, derived_seed
from tonari.core.rows.slices import cut
from tonari.shards import tuning
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace
from tonari.shards.lists import empty_lists, in_host_memory, lists_here, merge_into, merged_parts, renumbered
from tonari.shards.loading import Arriving, Share
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.sizes import MEMBER_BYTES
from tonari.shards.routes import dealing
from tonari.shards.routes.cluster_centres import CENTRE_PARTS, CENTRES, MEAN_PARTS, MEANS, near_centres, reached
from tonari.shards.samples import RECALL, SAMPLE, TRUTH, nearest_of_all, recall_stage, sample_stage, truth_stage
from tonari.shards.tasks import Route, Stage, Task, Worker, in_one_piece

# --- members


def _read_block(worker: Worker, args: tuple[int, int, int]) -> Any:
    return worker.load.range(*args[1:])


def _compute_members(worker: Worker, args: tuple[int, int, int], rows: Any) -> tuple[Any, npt.NDArray[np.uint32]]:
    """Assign the rows of a block to shards; return the end of each shard in a list of row numbers, then this list.

    Row numbers count from the start of the block. A row in several shards occurs several times.
    """
    centres, gaps, shards = _dealt_by(worker)
    distances, numbers = near_centres(worker, rows, centres, min(tuning.NEAR, len(centres)))
    ids = _numbers(args[1], args[2], rows)

    def of_part(part: slice) -> tuple[Any, Any]:
        near = reached(worker, distances[part], numbers[part], gaps, ids[part])
        return dealing.memberships(near, shards)

    total = worker.job.files.done("centres").facts["shards"]
    if worker.device != "cpu":
        of, numbered = of_part(slice(None))
        ends, numbered = of.bincount(minlength=total).cumsum(0), numbered.int()  # int32 halves the bytes to copy
        return in_host_memory(ends), in_host_memory(numbered).view(np.uint32)
    parts = cut(len(ids), tuning.DEALT_AT_ONCE)
    found = Workers(worker.threads).map(of_part, parts)
    of = np.concatenate([of for of, _ in found])
    order = np.argsort(of, kind="stable")
    numbered = np.concatenate([rows + part.start for (_, rows), part in zip(found, parts, strict=True)])
    return np.bincount(of, minlength=total).cumsum(), numbered[order].astype(np.uint32)


def _numbers(begin: int, end: int, rows: Any) -> Any:
    """Return the row numbers from `begin` to `end` - 1, on the device of `rows`."""
    if isinstance(rows, np.ndarray):
        return np.arange(begin, end)
    import torch

    return torch.arange(begin, end, device=rows.device)


def _dealt_by(worker: Worker) -> tuple[Any, Any, dealing.Shards]:
    """Return the centres, the distances between them, and the shards, on the worker's device.

    They are loaded only once.
    """
    if worker.dealt_by is None:
        files, there = worker.job.files, worker.place.there
        centres, gaps, table = (np.array(files.load(name, "centres")) for name in CENTRE_PARTS)
        shards = dealing.Shards(there(table[:, 0]), there(table[:, 1]), files.done("centres").facts["margin"])
        worker.dealt_by = there(centres), there(gaps), shards
    made: tuple[Any, Any, dealing.Shards] = worker.dealt_by
    return made


def _write_members(worker: Worker, args: tuple[int, int, int], made: tuple[Any, npt.NDArray[np.uint32]]) -> Done:
    ends, rows = made
    name = _members_name(args[0])
    saved = worker.job.files.save(name, rows[:, None])
    return Done({name: saved}, facts={"ends": [0, *ends.tolist()]})


def _members(worker: Worker, block: int, shard: int) -> npt.NDArray[np.uint32]:
    """Return the row numbers, counted from the block's first row, of the rows that a block has in a shard."""
    name = _members_name(block)
    ends = worker.job.files.done(name).facts["ends"]
    found: npt.NDArray[np.uint32] = np.asarray(worker.job.files.load(name, name))[ends[shard] : ends[shard + 1], 0]
    return found


def _members_name(block: int) -> str:
    return f"members-{block:06}"


# --- shards


def _read_shard(worker: Worker, args: tuple[int]) -> tuple[Any, Arriving]:
    return _read_shards(worker, [args])[0]


def _read_shards(worker: Worker, several: list[tuple[int]]) -> list[tuple[Any, Arriving]]:
    """Read the rows of several shards in one pass over the source; a row that is in several shards is read once."""
    job = worker.job
    begins, shards = range(0, job.source.n, job.plan.block), [shard for (shard,) in several]
    names = [(name, name) for name in map(_members_name, range(len(begins)))]
    job.files.load_all(names, worker.threads)

    def of_block(at: int) -> tuple[Any, list[Any], list[Any]]:
        members = [_members(worker, at, shard) for shard in shards]
        if len(shards) == 1:
            return members[0], members, []
        present = np.zeros(min(job.plan.block, job.source.n - begins[at]), bool)
        for some in members:
            present[some] = True
        number = np.cumsum(present) - 1
        return np.flatnonzero(present), members, [number[some] for some in members]

    blocks = Workers(worker.threads).map(of_block, range(len(begins)))
    waiting = worker.rows_at(_joined(begins, [union for union, _, _ in blocks]))
    of_shards = [_joined(begins, [members[at] for _, members, _ in blocks]) for at in range(len(shards))]
    if len(shards) == 1:
        return [(of_shards[0], waiting)]
    firsts = np.cumsum([0, *(len(union) for union, _, _ in blocks[:-1])])
    places = [_joined(firsts, [numbers[at] for _, _, numbers in blocks]) for at in range(len(shards))]
    return [(ids, Share(waiting, some)) for ids, some in zip(of_shards, places, strict=True)]


def _joined(begins: Iterable[int], parts: list[Any]) -> npt.NDArray[np.int64]:
    """Add `begins[i]` to all numbers in ``parts[i]``, and concatenate the results."""
    whole, end = np.empty(sum(map(len, parts)), np.int64), 0
    for begin, some in zip(begins, parts, strict=True):
        np.add(some, begin, out=whole[end : (end := end + len(some))])
    return whole


def _compute_shard(worker: Worker, args: tuple[int], data: tuple[Any, Arriving]) -> Neighbors:
    ids, waiting = data
    if len(ids) < 2:
        return empty_lists(worker, len(ids))
    seed = derived_seed(worker.job.seed, Purpose.SHARD, args[0])
    found = worker.graph(waiting.arrive(), seed, 1 - tuning.LOST_IN_SHARDS * (1 - worker.job.target))
    return renumbered(worker, found, ids.astype(index_dtype(worker.job.source.n)))


def _write_shard(worker: Worker, args: tuple[int], found: Neighbors) -> Done:
    files, plan, end = worker.job.files, worker.job.plan, 0
    named: dict[str, npt.NDArray[Any]] = {}
    for at, blocks in enumerate(plan.segments(files.n)):
        here = slice(end, end := end + sum(_rows_in(files, block, args[0]) for block in blocks))
        named |= {name: part[here] for name, part in zip(_shard_parts(args[0], at), found, strict=True)}
    return Done(files.save_all(named, worker.threads))


def _shard_parts(shard: int, segment: int) -> tuple[str, str]:
    name = f"{_shard_name(shard)}-{segment:06}"
    return f"{name}-distances", f"{name}-indices"


def _shard_name(shard: int) -> str:
    return f"shard-{shard:06}"


def _rows_in(files: Workspace, block: int, shard: int) -> int:
    """Return the number of rows of a block that are in a shard."""
    ends = files.done(_members_name(block)).facts["ends"]
    return int(ends[shard + 1] - ends[shard])


# --- rows


def _read_lists(worker: Worker, args: tuple[int, int, int]) -> list[tuple[Any, Neighbors]]:
    files, (block, _, _) = worker.job.files, args
    segment, blocks = next((at, of) for at, of in enumerate(worker.job.plan.segments(files.n)) if block in of)
    shards = [at for at in range(files.done("centres").facts["shards"]) if _rows_in(files, block, at)]
    names = [(name, _shard_name(shard)) for shard in shards for name in _shard_parts(shard, segment)]
    parts, read = iter(files.load_all(names, worker.threads)), []
    for shard in shards:
        rows = _members(worker, block, shard).astype(np.int64)
        first = sum(_rows_in(files, at, shard) for at in range(blocks.start, block))
        read.append((rows, Neighbors(*(next(parts)[first : first + len(rows)] for _ in range(2)))))
    return read


def _compute_rows(worker: Worker, args: tuple[int, int, int], read: list[tuple[Any, Neighbors]]) -> Neighbors:
    _, begin, end = args
    kept = merged_parts(worker, end - begin, read)
    short = np.flatnonzero(kept.indices[:, -1] < 0)
    if len(short):  # lists are shorter than k if all shards of these rows are small
        job = worker.job
        merge_into(worker, kept, short, nearest_of_all(worker, begin + short, slab=job.source.block_rows))
    return kept


def _write_rows(worker: Worker, args: tuple[int, int, int], found: Neighbors) -> Done:
    return Done(rows=worker.job.files.write_rows(args[1], found, worker.threads))


# --- all rows in a single shard


def _read_all(worker: Worker, args: Any) -> Any:
    return worker.load.range(0, worker.job.source.n)


def _compute_all(worker: Worker, args: Any, rows: Any) -> Neighbors:
    return lists_here(worker, worker.graph(rows, worker.job.seed, worker.job.target))


def _stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    n = files.n
    truth = truth_stage(n, plan)
    yield sample_stage()
    if plan.shards == 1:
        yield truth
        yield Stage([Task("rows-000000", "all", (0, 0, n), n)])
        yield recall_stage(n, plan)
        return
    # longest tasks first, so that all workers end at about the same time
    yield Stage([Task("means", "means"), *truth.tasks])
    yield Stage([Task("centres", "centres")], drops=MEAN_PARTS)
    shards = files.done("centres").facts["shards"]
    blocks = [(at, part.start, part.stop) for at, part in enumerate(cut(n, plan.block))]
    yield Stage([Task(_members_name(args[0]), "members", args, args[2] - args[1]) for args in blocks])
    ends = [files.done(_members_name(args[0])).facts["ends"] for args in blocks]
    sizes = np.diff(ends, axis=1).sum(axis=0)
    # rows that the shards have in excess of the plan's estimate
    copies = int(sizes.sum()) - math.ceil(tuning.COPIES * n)
    largest_first = np.argsort(-sizes, kind="stable").tolist()  # so that all workers end at about the same time
    yield Stage(
        [Task(_shard_name(at), "shard", (at,), tuning.GRAPH_WORK * int(sizes[at])) for at in largest_first],
        drops=CENTRE_PARTS,
        disk_bytes=plan.disk_bytes + copies * (files.list_bytes + MEMBER_BYTES),
    )
    for segment, own in enumerate(plan.segments(n)):
        lists = itertools.chain.from_iterable(_shard_parts(shard, segment) for shard in range(shards))
        yield Stage(
            [Task(f"rows-{at:06}", "rows", blocks[at], blocks[at][2] - blocks[at][1]) for at in own],
            drops=(*lists, *map(_members_name, own)),
        )
    yield recall_stage(n, plan)


CLUSTERS = Route(
    {
        "sample": SAMPLE,
        "truth": TRUTH,
        "all": in_one_piece(_read_all, _compute_all, _write_rows),
        "means": MEANS,
        "centres": CENTRES,
        "members": in_one_piece(_read_block, _compute_members, _write_members),
        "shard": in_one_piece(_read_shard, _compute_shard, _write_shard, _read_shards),
        "rows": in_one_piece(_read_lists, _compute_rows, _write_rows),
        "recall": RECALL,
    },
    _stages,
)
