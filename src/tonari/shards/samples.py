"""Samples of rows with their true neighbours, which measure the recall of a graph and the overlap of its shards."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.rows.draws import Purpose, generator
from tonari.core.rows.slices import cut
from tonari.inputs import to_host
from tonari.metrics.recall import Recall, neighbors_recall
from tonari.shards import tuning
from tonari.shards.directory.done import Done
from tonari.shards.lists import empty_lists, merge_into, renumbered, without_own
from tonari.shards.loading import blocks
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.sizes import sampled_rows, truth_tasks
from tonari.shards.tasks import Job, Stage, Task, Worker, in_one_piece


def nearest_of_all(
    worker: Worker,
    rows: npt.NDArray[np.int64],
    *,
    slab: int,
    begin: int = 0,
    end: int | None = None,
    asked: Any = None,
) -> Neighbors:
    """Find the k nearest neighbours of some rows among the rows [begin, end) of the source, which are read once.

    `rows` has the row numbers of the queries. If the queries are already on the worker's device, they are passed as
    `asked`. `slab` is the number of rows that are read and searched in one step.
    """
    job = worker.job
    last = job.source.n if end is None else end
    queries = worker.load.at(rows) if asked is None else asked
    kept, everyone = empty_lists(worker, len(rows)), np.arange(len(rows))
    parts = [slice(begin + at.start, begin + at.stop) for at in cut(last - begin, slab)]
    for part, points in blocks(worker.load, parts, ahead=job.plan.reads_ahead):
        found = worker.nearest(queries, points, min(job.k + 1, len(points)))
        numbers = np.arange(part.start, part.start + len(points)).astype(index_dtype(job.source.n))
        merge_into(worker, kept, everyone, without_own(renumbered(worker, found, numbers), rows))
        del points
    return kept


_SAMPLE = "sample"


def measured_rows(job: Job) -> npt.NDArray[np.int64]:
    """Draw the rows for measuring the recall of the graph and of each merge of two slabs."""
    count = _sampled(job)
    if job.plan.route == "ggm":  # on average, k / shards of a sampled row's neighbours are in each slab
        count = max(count, min(tuning.MOST_SAMPLED, tuning.KNOWN_OF_A_PAIR * job.plan.shards**2 // (2 * job.k)))
    return _rows_for(job, Purpose.SHARDS_MEASURED, count)


def overlap_rows(job: Job) -> npt.NDArray[np.int64]:
    """Draw the rows that determine the overlap of shards, independently of the rows that measure the recall."""
    return _rows_for(job, Purpose.SHARD_OVERLAP, _sampled(job))


def _sampled(job: Job) -> int:
    return sampled_rows(job.target)


def _rows_for(job: Job, purpose: Purpose, count: int) -> npt.NDArray[np.int64]:
    n = job.source.n
    return np.sort(generator(job.seed, purpose).choice(n, min(n, count), replace=False)).astype(np.int64)


def _known_rows(job: Job) -> npt.NDArray[np.int64]:
    """Return the row numbers of all samples together, since one search finds the true neighbours of all."""
    chooses = job.plan.route == "clusters" and job.plan.shards > 1
    return np.union1d(measured_rows(job), overlap_rows(job)) if chooses else measured_rows(job)


def _compute_sample(worker: Worker, args: Any, data: Any) -> npt.NDArray[np.uint8]:
    """Return the rows of all samples as bytes for a file; reading them again could be slow.

    An object of the caller may compute all rows to return a few.
    """
    job = worker.job
    rows, read = _known_rows(job), []
    for part in cut(len(rows), job.plan.rows):
        read.append(np.ascontiguousarray(inputs.held(to_host(worker.load.at(rows[part])))).view(np.uint8))
    return np.concatenate(read)


def _write_sample(worker: Worker, args: Any, rows: npt.NDArray[np.uint8]) -> Done:
    return Done({_SAMPLE: worker.job.files.save(_SAMPLE, rows)})


def _sample_rows(worker: Worker, part: slice) -> Any:
    """Return a range of the sampled rows, which the task "sample" has stored, on the worker's device."""
    source, files = worker.job.source, worker.job.files
    return worker.place.there(np.array(files.load(_SAMPLE, _SAMPLE)[part]).view(inputs.dtype_of(source.dtype)))


def _compute_truth(worker: Worker, args: tuple[int, int, int], data: Any) -> Neighbors:
    job = worker.job
    rows = _known_rows(job)
    among = {"slab": job.source.block_rows, "begin": args[1], "end": args[2]}
    parts, found = cut(len(rows), job.plan.rows), []
    if len(parts) == 1 and worker.sampled is None:
        worker.sampled = _sample_rows(worker, parts[0])
    for part in parts:
        queries = _sample_rows(worker, part) if worker.sampled is None else worker.sampled
        found.append(nearest_of_all(worker, rows[part], **among, asked=queries))
    return Neighbors(*map(np.concatenate, zip(*found, strict=True)))


def _write_truth(worker: Worker, args: tuple[int, int, int], found: Neighbors) -> Done:
    files = worker.job.files
    return Done({name: files.save(name, part) for name, part in zip(_truth_parts(args[0]), found, strict=True)})


def truth_of(
    worker: Worker, sample: Callable[[Job], npt.NDArray[np.int64]] = measured_rows
) -> tuple[npt.NDArray[np.int64], Neighbors]:
    """Return the sampled rows and their true neighbours, which are merged from the results of all ranges of rows."""
    job = worker.job
    known, rows = _known_rows(job), sample(job)
    truth, everyone = empty_lists(worker, len(known)), np.arange(len(known))
    for at in range(truth_tasks(job.source.n, job.plan.shards)):
        found = (job.files.load(name, _truth_task(at)) for name in _truth_parts(at))
        merge_into(worker, truth, everyone, Neighbors(*map(np.array, found)))
    places = np.searchsorted(known, rows)
    return rows, Neighbors(truth.distances[places], truth.indices[places])


def _truth_task(at: int) -> str:
    return f"truth-{at:06}"


def _truth_parts(at: int) -> tuple[str, str]:
    return f"{_truth_task(at)}-distances", f"{_truth_task(at)}-indices"


def _compute_recall(worker: Worker, args: Any, data: Any) -> Recall:
    rows, truth = truth_of(worker)
    job = worker.job
    if job.change is not None:
        truth = truth._replace(distances=job.change.values(truth.distances))
    result = job.files.rows()
    found = Neighbors(*(np.array(part[rows]) for part in result))
    return neighbors_recall(found, truth, metric=job.metric, population=job.source.n)


SAMPLE = in_one_piece(lambda worker, args: None, _compute_sample, _write_sample)
TRUTH = in_one_piece(lambda worker, args: None, _compute_truth, _write_truth)
RECALL = in_one_piece(lambda worker, args: None, _compute_recall, lambda worker, args, made: Done(facts=made.__dict__))


def truth_stage(n: int, plan: ShardPlan) -> Stage:
    """Return the stage that finds the true neighbours of the samples; each task searches a range of rows."""
    count = truth_tasks(n, plan.shards)
    ranges = [(at, n * at // count, n * (at + 1) // count) for at in range(count)]
    return Stage([Task(_truth_task(args[0]), "truth", args, args[2] - args[1]) for args in ranges])


def sample_stage() -> Stage:
    """Return the stage that reads the rows of the samples."""
    return Stage([Task(_SAMPLE, "sample")])


def recall_stage(n: int, plan: ShardPlan) -> Stage:
    """Return the stage that measures the recall."""
    names = itertools.chain.from_iterable(map(_truth_parts, range(truth_tasks(n, plan.shards))))
    return Stage([Task("recall", "recall")], drops=(_SAMPLE, *names))
