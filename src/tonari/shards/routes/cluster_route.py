"""Overlapping shards of near rows: the graph of each shard is built separately, then the lists of a row are merged.

    means           k-means, and the near centres of many rows (dealing.py)
    truth-P         the true neighbours of two samples of rows, in a part of all rows
    centres         shards of near centres, and their overlap, chosen by one sample
    members-B       the rows of a block that belong to each shard
    shard-S         the graph of a shard's rows
    rows-B          the lists of a block's rows, merged over all shards that contain them
    recall          measured on the other sample, since the overlap was fitted to the first one

Rows without a common shard are never compared, so neighbours may be missed. Their share is estimated before the first
shard is built, and measured at the end.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.draws import Purpose, derived_seed
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors, index_dtype, value_dtype
from tonari.core.slices import cut
from tonari.shards import tuning
from tonari.shards.common import (
    RECALL,
    TRUTH,
    empty_lists,
    in_host_memory,
    joined,
    lists_here,
    merge_into,
    nearest_of_all,
    overlap_rows,
    recall_stage,
    renumbered,
    truth_of,
    truth_stage,
)
from tonari.shards.directory.done import Done
from tonari.shards.directory.workspace import Workspace
from tonari.shards.loading import Arriving
from tonari.shards.plan import ShardPlan
from tonari.shards.routes import dealing
from tonari.shards.routes.centres import Floats, gaps_of, train
from tonari.shards.tasks import Route, Stage, Task, Worker, in_one_piece

logger = logging.getLogger("tonari")

_MEANS = ("means", "means-gaps", "many-reaches", "many-centres", "many-rows")  # parts of the task "means"
_CENTRES = ("centres", "gaps", "shards")  # parts by which rows are dealt


def _near(worker: Worker, rows: Any, centres: Floats, k: int) -> tuple[Any, Any]:
    """Return distances and numbers of the nearest centres."""
    found = worker.nearest(rows, worker.place.there(centres), k)
    return found.distances, found.indices


def _near_in_host_memory(worker: Worker, rows: Any, centres: Floats, k: int) -> tuple[Any, Any]:
    distances, near = _near(worker, rows, centres, k)
    return in_host_memory(distances), in_host_memory(near)


# --- centres


class _Means(NamedTuple):
    """The centres, the distances between them, and the near centres of rows drawn evenly from all rows."""

    centres: Floats
    gaps: Floats
    many: dealing.Near


def _compute_means(worker: Worker, args: Any, data: Any) -> _Means:
    job, plan = worker.job, worker.job.plan
    trained = tuning.TRAINED * plan.clusters

    def nearest(some: Floats, centres: Floats, k: int) -> tuple[Any, Any]:
        return _near_in_host_memory(worker, worker.place.there(some), centres, k)

    centres = train(_drawn(worker, _piece_rows(worker, trained), 0.0)[0], plan.clusters, nearest, job.seed)
    gaps = gaps_of(centres, nearest)
    return _Means(centres, gaps, _near_of_others(worker, centres, gaps, max(tuning.JUDGED, trained)))


def _write_means(worker: Worker, args: Any, made: _Means) -> Done:
    files, (centres, gaps, many) = worker.job.files, made
    parts = zip(_MEANS, (centres, gaps, many.reaches, many.centres, many.rows[:, None]), strict=True)
    return Done({name: files.save(name, part) for name, part in parts})


def _means(worker: Worker) -> _Means:
    """Return what the task "means" computed."""
    centres, gaps, reaches, near, rows = (np.array(worker.job.files.load(name, "means")) for name in _MEANS)
    return _Means(centres, gaps, dealing.Near(reaches, near, rows[:, 0]))


def _compute_centres(worker: Worker, args: Any, data: Any) -> tuple[Floats, Floats, dealing.Dealt]:
    job = worker.job
    source, plan = job.source, job.plan
    centres, gaps, many = _means(worker)
    sample, truth = truth_of(worker, overlap_rows)
    others, places = np.unique(truth.indices.astype(np.int64), return_inverse=True)
    both = np.union1d(sample, others)  # an object may have to make all rows for each time that some are read
    near = _near_of(worker, both, centres, gaps)
    of_rows, of_others = (near.at(np.searchsorted(both, ids)) for ids in (sample, others))
    dealt = dealing.choose(
        centres,
        dealing.Seen(many, of_rows, of_others, places.reshape(truth.indices.shape)),
        shards=min(plan.clusters, max(2, math.ceil(tuning.MOST_SHARDS * source.n / plan.rows))),
        most=plan.rows / source.n / tuning.SPREAD,
        wanted=1 - tuning.LOST_TO_CUTS * (1 - job.target),
    )
    logger.info(
        "%d shards, margin %g: %.4f of the neighbours share one, %.2f shards a row, the largest has %.3f of all rows",
        *(dealt.shards.total, dealt.shards.margin, dealt.covered, dealt.copies, dealt.largest),
    )
    return centres, gaps, dealt


def _piece_rows(worker: Worker, count: int) -> int:
    """Return the number of rows per range for a number of ranges, reduced to the budget."""
    source, plan = worker.job.source, worker.job.plan
    if worker.device == "cpu":  # in the memory of a shard, and of a part of the engine
        room = plan.rows * source.row_bytes + plan.engine_bytes // 8
        count = min(count, max(plan.clusters, room // (8 * source.d)))
    return -(-count // tuning.PIECES)


def _drawn(worker: Worker, size: int, shift: float) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return evenly spaced ranges of rows in host memory, and their row numbers; `shift` selects other ranges."""
    source = worker.job.source
    if size * tuning.PIECES >= source.n:
        begins, size = np.zeros(1, np.int64), source.n
    else:
        begins = ((np.arange(tuning.PIECES) + shift) * (source.n - size) / tuning.PIECES).astype(np.int64)
    numbers = (begins[:, None] + np.arange(size)).reshape(-1)
    if worker.device != "cpu":  # one copy instead of many
        ranges = [slice(begin, begin + size) for begin in begins.tolist()]
        found = inputs.as_floats(in_host_memory(worker.load.ranges(ranges)))
        return found.astype(value_dtype(source.dtype), copy=False), numbers
    rows = np.empty((len(numbers), source.d), value_dtype(source.dtype))
    for at, begin in enumerate(begins.tolist()):
        rows[at * size : (at + 1) * size] = inputs.as_floats(in_host_memory(worker.load.range(begin, begin + size)))
    return rows, numbers


def _near_of_others(worker: Worker, centres: Floats, gaps: Floats, count: int) -> dealing.Near:
    """Return the nearest centres of a sample of rows other than the training rows of the centres."""
    rows, ids = _drawn(worker, _piece_rows(worker, count), 0.5)
    near = min(tuning.NEAR, len(centres))
    found = _near_in_host_memory(worker, worker.place.there(rows), centres, near)
    return _reached(worker, *found, gaps, ids)


def _near_of(worker: Worker, ids: npt.NDArray[np.int64], centres: Floats, gaps: Floats) -> dealing.Near:
    """Return the nearest centres of rows of the source, reading as many rows at once as a shard has."""
    near = min(tuning.NEAR, len(centres))
    found = [
        _near_in_host_memory(worker, worker.load.at(ids[part]), centres, near)
        for part in cut(len(ids), worker.job.plan.rows)
    ]
    distances, numbers = zip(*found, strict=True)
    return _reached(worker, np.concatenate(distances), np.concatenate(numbers), gaps, ids)


def _reached(worker: Worker, distances: Any, numbers: Any, gaps: Any, ids: Any) -> dealing.Near:
    metric = worker.job.record
    squared = metric.power == 2  # 1 - cos is half the square of a distance, too
    lengths = (distances, gaps) if squared else (metric.lengths(distances), metric.lengths(gaps))
    return dealing.Near(dealing.reaches(lengths[0], numbers, lengths[1], squared=squared), numbers, ids)


def _write_centres(worker: Worker, args: Any, made: tuple[Floats, Floats, dealing.Dealt]) -> Done:
    centres, gaps, dealt = made
    files = worker.job.files
    shards = np.stack([dealt.shards.first, dealt.shards.turns], axis=1)
    parts = {name: files.save(name, part) for name, part in zip(_CENTRES, (centres, gaps, shards), strict=True)}
    facts = {name: getattr(dealt, name) for name in ("covered", "copies", "largest")}
    return Done(parts, facts=facts | {"shards": dealt.shards.total, "margin": dealt.shards.margin})


# --- members


def _read_block(worker: Worker, args: tuple[int, int, int]) -> Any:
    return worker.load.range(*args[1:])


def _compute_members(worker: Worker, args: tuple[int, int, int], rows: Any) -> tuple[Any, npt.NDArray[np.uint32]]:
    """Return the end of each shard's rows of a block, and the rows of all shards, numbered within the block."""
    centres, gaps, shards = _dealt_by(worker)
    distances, numbers = _near(worker, rows, centres, min(tuning.NEAR, len(centres)))
    ids = _numbers(args[1], args[2], rows)

    def of_part(part: slice) -> tuple[Any, Any]:
        near = _reached(worker, distances[part], numbers[part], gaps, ids[part])
        return dealing.memberships(near, shards)

    total = worker.job.files.done("centres").facts["shards"]
    if worker.device != "cpu":
        of, numbered = of_part(slice(None))
        ends, numbered = of.bincount(minlength=total).cumsum(0), numbered.int()  # fewer bytes to copy
        return in_host_memory(ends), in_host_memory(numbered).view(np.uint32)
    parts = cut(len(ids), tuning.DEALT_AT_ONCE)
    found = Workers(worker.threads).map(of_part, parts)
    of = np.concatenate([of for of, _ in found])
    order = np.argsort(of, kind="stable")
    numbered = np.concatenate([rows + part.start for (_, rows), part in zip(found, parts, strict=True)])
    return np.bincount(of, minlength=total).cumsum(), numbered[order].astype(np.uint32)


def _numbers(begin: int, end: int, rows: Any) -> Any:
    """Return consecutive row numbers on the device of rows."""
    if isinstance(rows, np.ndarray):
        return np.arange(begin, end)
    import torch

    return torch.arange(begin, end, device=rows.device)


def _dealt_by(worker: Worker) -> tuple[Any, Any, dealing.Shards]:
    """Return the centres, their distances and the shards on the worker's device, which loads them once."""
    if worker.dealt_by is None:
        files, there = worker.job.files, worker.place.there
        centres, gaps, table = (np.array(files.load(name, "centres")) for name in _CENTRES)
        shards = dealing.Shards(there(table[:, 0]), there(table[:, 1]), files.done("centres").facts["margin"])
        worker.dealt_by = there(centres), there(gaps), shards
    made: tuple[Any, Any, dealing.Shards] = worker.dealt_by
    return made


def _write_members(worker: Worker, args: tuple[int, int, int], made: tuple[Any, npt.NDArray[np.uint32]]) -> Done:
    ends, rows = made
    name = f"members-{args[0]:06}"
    saved = worker.job.files.save(name, rows[:, None])
    return Done({name: saved}, facts={"ends": [0, *ends.tolist()]})


def _members(worker: Worker, block: int, shard: int) -> npt.NDArray[np.uint32]:
    """Return the rows of a block that are in a shard, numbered within the block; a part of a mapped file."""
    name = f"members-{block:06}"
    ends = worker.job.files.done(name).facts["ends"]
    found: npt.NDArray[np.uint32] = np.asarray(worker.job.files.load(name, name))[ends[shard] : ends[shard + 1], 0]
    return found


# --- shards


def _read_shard(worker: Worker, args: tuple[int]) -> tuple[Any, Arriving]:
    job = worker.job
    begins = range(0, job.source.n, job.plan.block)
    members = [_members(worker, at, args[0]) for at in range(len(begins))]
    ids, end = np.empty(sum(map(len, members)), np.int64), 0
    for begin, some in zip(begins, members, strict=True):
        np.add(some, begin, out=ids[end : (end := end + len(some))])
    return ids, worker.rows_at(ids)


def _compute_shard(worker: Worker, args: tuple[int], data: tuple[Any, Arriving]) -> Neighbors:
    ids, waiting = data
    if len(ids) < 2:
        return empty_lists(worker, len(ids))
    seed = derived_seed(worker.job.seed, Purpose.SHARD, args[0])
    found = worker.graph(waiting.arrive(), seed, 1 - tuning.LOST_IN_SHARDS * (1 - worker.job.target))
    return renumbered(worker, found, ids.astype(index_dtype(worker.job.source.n)))


def _write_shard(worker: Worker, args: tuple[int], found: Neighbors) -> Done:
    named = dict(zip(_shard_parts(args[0]), found, strict=True))
    return Done(worker.job.files.save_all(named, worker.threads))


def _shard_parts(shard: int) -> tuple[str, str]:
    return f"shard-{shard:06}-distances", f"shard-{shard:06}-indices"


# --- rows


def _read_lists(worker: Worker, args: tuple[int, int, int]) -> list[tuple[Any, Neighbors]]:
    files, (block, _, _) = worker.job.files, args
    read = []
    for shard in range(files.done("centres").facts["shards"]):
        rows = _members(worker, block, shard).astype(np.int64)
        if not len(rows):
            continue
        counts = (files.done(f"members-{at:06}").facts["ends"] for at in range(block))
        first = sum(ends[shard + 1] - ends[shard] for ends in counts)
        parts = (files.load(name, f"shard-{shard:06}") for name in _shard_parts(shard))
        read.append((rows, Neighbors(*(part[first : first + len(rows)] for part in parts))))
    return read


def _compute_rows(worker: Worker, args: tuple[int, int, int], read: list[tuple[Any, Neighbors]]) -> Neighbors:
    _, begin, end = args
    kept = joined(worker, end - begin, read)
    short = np.flatnonzero(kept.indices[:, -1] < 0)
    if len(short):  # in shards of few rows
        job = worker.job
        merge_into(worker, kept, short, nearest_of_all(worker, begin + short, slab=job.source.block_rows))
    return kept


def _write_rows(worker: Worker, args: tuple[int, int, int], found: Neighbors) -> Done:
    return Done(rows=worker.job.files.write_rows(args[1], found, worker.threads))


# --- one shard that holds all


def _read_all(worker: Worker, args: Any) -> Any:
    return worker.load.range(0, worker.job.source.n)


def _compute_all(worker: Worker, args: Any, rows: Any) -> Neighbors:
    return lists_here(worker, worker.graph(rows, worker.job.seed, worker.job.target))


def _stages(files: Workspace, plan: ShardPlan) -> Iterator[Stage]:
    n = files.n
    truth = truth_stage(n, plan)
    if plan.shards == 1:
        yield truth
        yield Stage([Task("rows-000000", "all", (0, 0, n), n)])
        yield recall_stage(plan)
        return
    yield Stage([Task("means", "means"), *truth.tasks])  # the longest task first, so that several workers end together
    yield Stage([Task("centres", "centres")], drops=_MEANS)
    shards = files.done("centres").facts["shards"]
    blocks = [(at, part.start, part.stop) for at, part in enumerate(cut(n, plan.block))]
    yield Stage([Task(f"members-{args[0]:06}", "members", args, args[2] - args[1]) for args in blocks])
    ends = [files.done(f"members-{args[0]:06}").facts["ends"] for args in blocks]
    sizes = np.diff(ends, axis=1).sum(axis=0)
    largest_first = np.argsort(-sizes, kind="stable").tolist()  # so that several workers end together
    yield Stage(
        [Task(f"shard-{at:06}", "shard", (at,), tuning.GRAPH_WORK * int(sizes[at])) for at in largest_first],
        drops=_CENTRES,
    )
    lists = itertools.chain.from_iterable(map(_shard_parts, range(shards)))
    members = (f"members-{args[0]:06}" for args in blocks)
    yield Stage(
        [Task(f"rows-{args[0]:06}", "rows", args, args[2] - args[1]) for args in blocks],
        drops=(*lists, *members),
    )
    yield recall_stage(plan)


CLUSTERS = Route(
    {
        "truth": TRUTH,
        "all": in_one_piece(_read_all, _compute_all, _write_rows),
        "means": in_one_piece(lambda worker, args: None, _compute_means, _write_means),
        "centres": in_one_piece(lambda worker, args: None, _compute_centres, _write_centres),
        "members": in_one_piece(_read_block, _compute_members, _write_members),
        "shard": in_one_piece(_read_shard, _compute_shard, _write_shard),
        "rows": in_one_piece(_read_lists, _compute_rows, _write_rows),
        "recall": RECALL,
    },
    _stages,
)
