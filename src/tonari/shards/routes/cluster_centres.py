"""Compute the centres that assign rows to overlapping shards: the tasks "means" and "centres" of cluster_route.py.

"means" trains the centres without the true neighbours of the sampled rows, so one device can train them while other
devices search for these neighbours. "centres" uses both to choose the shards and their overlap.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.results.neighbors import value_dtype
from tonari.core.rows.draws import Purpose, generator
from tonari.core.rows.slices import cut
from tonari.shards import tuning
from tonari.shards.directory.done import Done
from tonari.shards.lists import in_host_memory
from tonari.shards.routes import dealing
from tonari.shards.samples import overlap_rows, truth_of
from tonari.shards.tasks import Worker, in_one_piece

Floats = npt.NDArray[Any]  # the centres are float64 if the points are, otherwise float32
Nearest = Callable[[Floats, Floats, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


def train(rows: Floats, count: int, nearest: Nearest, seed: int) -> Floats:
    """Run k-means on `rows`, starting with `count` random rows, and return the centres; empty clusters keep theirs.

    `nearest(rows, centres, k)` returns the distances and the indices of the k nearest centres of each row.
    """
    drawn = np.sort(generator(seed, Purpose.SHARD_CENTRES).choice(len(rows), count, replace=False))
    centres = rows[drawn].copy()
    for _ in range(tuning.KMEANS_ROUNDS):
        of = nearest(rows, centres, 1)[1][:, 0]
        sums, sizes = np.zeros(centres.shape), np.bincount(of, minlength=count)
        for part in cut(len(rows), max(1, tuning.SUMMED_BYTES // sums[0].nbytes)):
            order = np.argsort(of[part], kind="stable")
            counts = np.bincount(of[part], minlength=count)
            present, begins = np.flatnonzero(counts), (np.cumsum(counts) - counts)[counts > 0]
            sums[present] += np.add.reduceat(rows[part][order].astype(np.float64), begins, axis=0)
        centres[sizes > 0] = sums[sizes > 0] / sizes[sizes > 0, None]
    return centres


def gaps_of(centres: Floats, nearest: Nearest) -> Floats:
    """Return the matrix of the distances between all c centres: shape (c, c)."""
    distances, numbers = nearest(centres, centres, len(centres))
    gaps = np.empty_like(distances)
    np.put_along_axis(gaps, numbers.astype(np.int64), distances, axis=1)
    return gaps


def deal(centres: Floats, weights: npt.NDArray[np.float64], shards: int) -> npt.NDArray[np.int64]:
    """Assign each centre to a shard such that near centres share a shard, and all shards have about equal weights.

    >>> line = np.arange(6, dtype=np.float32)[:, None]
    >>> sorted(deal(line, np.ones(6), 3).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    of = np.zeros(len(centres), np.int64)
    todo = [(np.arange(len(centres)), 0, shards)]
    while todo:
        some, begin, end = todo.pop()
        if end - begin == 1:
            of[some] = begin
            continue
        middle = (begin + end) // 2
        left, right = _halves(centres[some].astype(np.float64), weights[some], middle - begin, end - middle)
        todo += [(some[left], begin, middle), (some[right], middle, end)]
    return of


def _halves(
    rows: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], left: int, right: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Bisect weighted rows into two parts for `left` and `right` shards, and return the row numbers of each part.

    The ratio of the two parts' weights is about `left` to `right`. The first cut is across the principal axis; each
    further cut is across the line between the means of the two parts.
    """
    axis, wanted = _principal_axis(rows, weights), weights.sum() * left / (left + right)
    for _ in range(tuning.HALVING_STEPS):
        order = np.argsort(rows @ axis, kind="stable")
        at = int(np.abs(np.cumsum(np.append(0.0, weights[order])) - wanted).argmin())
        at = min(max(at, left), len(rows) - right)
        parts = order[:at], order[at:]
        low, high = (weights[part] @ rows[part] / weights[part].sum() for part in parts)
        axis = high - low
    return parts


def _principal_axis(rows: Floats, weights: npt.NDArray[np.float64]) -> Floats:
    """Approximate the first principal axis of weighted rows by the power method."""
    spread: Floats = (rows - weights @ rows / weights.sum()) * np.sqrt(weights)[:, None]
    axis: Floats = spread[np.square(spread).sum(axis=1).argmax()]
    for _ in range(tuning.AXIS_STEPS):
        length = np.linalg.norm(axis)
        if length == 0:  # all rows are equal, so any axis is as good
            break
        axis = spread.T @ (spread @ (axis / length))
    return axis


logger = logging.getLogger("tonari")

# names of the parts that the task "means" writes
MEAN_PARTS = ("means", "means-gaps", "many-reaches", "many-centres", "many-rows")
CENTRE_PARTS = ("centres", "gaps", "shards")  # names of the parts that the task "centres" writes


def near_centres(worker: Worker, rows: Any, centres: Floats, k: int) -> tuple[Any, Any]:
    """Return the distances and the indices of the k nearest centres of each row."""
    found = worker.nearest(rows, worker.place.there(centres), k)
    return found.distances, found.indices


def _near_in_host_memory(worker: Worker, rows: Any, centres: Floats, k: int) -> tuple[Any, Any]:
    distances, near = near_centres(worker, rows, centres, k)
    return in_host_memory(distances), in_host_memory(near)


class _Means(NamedTuple):
    """The results of "means": centres, the distances between them, and the near centres of evenly spaced rows."""

    centres: Floats
    gaps: Floats
    many: dealing.Near


def _compute_means(worker: Worker, args: Any, data: Any) -> _Means:
    job, plan = worker.job, worker.job.plan
    trained = tuning.TRAINED * plan.clusters

    def nearest(some: Floats, centres: Floats, k: int) -> tuple[Any, Any]:
        return _near_in_host_memory(worker, worker.place.there(some), centres, k)

    centres = train(_read_spaced_ranges(worker, _piece_rows(worker, trained), 0.0)[0], plan.clusters, nearest, job.seed)
    gaps = gaps_of(centres, nearest)
    return _Means(centres, gaps, _near_of_others(worker, centres, gaps, max(tuning.JUDGED, trained)))


def _write_means(worker: Worker, args: Any, made: _Means) -> Done:
    files, (centres, gaps, many) = worker.job.files, made
    parts = zip(MEAN_PARTS, (centres, gaps, many.reaches, many.centres, many.rows[:, None]), strict=True)
    return Done({name: files.save(name, part) for name, part in parts})


def _means(worker: Worker) -> _Means:
    """Return the results of the task "means"."""
    centres, gaps, reaches, near, rows = (np.array(worker.job.files.load(name, "means")) for name in MEAN_PARTS)
    return _Means(centres, gaps, dealing.Near(reaches, near, rows[:, 0]))


def _compute_centres(worker: Worker, args: Any, data: Any) -> tuple[Floats, Floats, dealing.ChosenShards]:
    job = worker.job
    source, plan = job.source, job.plan
    centres, gaps, many = _means(worker)
    sample, truth = truth_of(worker, overlap_rows)
    others, places = np.unique(truth.indices.astype(np.int64), return_inverse=True)
    # one read for both purposes, because an object of the caller may compute all rows to return a few
    both = np.union1d(sample, others)
    near = _near_of(worker, both, centres, gaps)
    of_rows, of_others = (near.at(np.searchsorted(both, ids)) for ids in (sample, others))
    chosen = dealing.choose(
        centres,
        dealing.Samples(many, of_rows, of_others, places.reshape(truth.indices.shape)),
        shards=min(plan.clusters, max(2, math.ceil(tuning.MOST_SHARDS * source.n / plan.rows))),
        most=plan.rows / source.n / tuning.SPREAD,
        wanted=1 - tuning.LOST_TO_CUTS * (1 - job.target),
    )
    logger.info(
        "%d shards, margin %g: %.4f of the neighbours share one, %.2f shards a row, the largest has %.3f of all rows",
        *(chosen.shards.total, chosen.shards.margin, chosen.covered, chosen.copies, chosen.largest),
    )
    return centres, gaps, chosen


def _piece_rows(worker: Worker, count: int) -> int:
    """Return the rows per range: PIECES ranges have about `count` rows in total, or fewer if memory is short."""
    source, plan = worker.job.source, worker.job.plan
    if worker.device == "cpu":  # the memory for the rows of one shard, and an eighth as much for searches
        room = plan.rows * source.row_bytes + plan.engine_bytes // 8
        count = min(count, max(plan.clusters, room // (8 * source.d)))
    return -(-count // tuning.PIECES)


def _read_spaced_ranges(worker: Worker, size: int, shift: float) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Read PIECES evenly spaced ranges of `size` rows into host memory; return the rows and their row numbers.

    `shift` moves all ranges, by a fraction of the distance between two ranges.
    """
    source = worker.job.source
    if size * tuning.PIECES >= source.n:
        begins, size = np.zeros(1, np.int64), source.n
    else:
        begins = ((np.arange(tuning.PIECES) + shift) * (source.n - size) / tuning.PIECES).astype(np.int64)
    numbers = (begins[:, None] + np.arange(size)).reshape(-1)
    if worker.device != "cpu":  # one copy from the device for all ranges instead of PIECES copies
        ranges = [slice(begin, begin + size) for begin in begins.tolist()]
        found = inputs.as_floats(in_host_memory(worker.load.ranges(ranges)))
        return found.astype(value_dtype(source.dtype), copy=False), numbers
    rows = np.empty((len(numbers), source.d), value_dtype(source.dtype))
    for at, begin in enumerate(begins.tolist()):
        rows[at * size : (at + 1) * size] = inputs.as_floats(in_host_memory(worker.load.range(begin, begin + size)))
    return rows, numbers


def _near_of_others(worker: Worker, centres: Floats, gaps: Floats, count: int) -> dealing.Near:
    """Return the near centres of about `count` sampled rows that were not used to train the centres."""
    rows, ids = _read_spaced_ranges(worker, _piece_rows(worker, count), 0.5)
    near = min(tuning.NEAR, len(centres))
    found = _near_in_host_memory(worker, worker.place.there(rows), centres, near)
    return reached(worker, *found, gaps, ids)


def _near_of(worker: Worker, ids: npt.NDArray[np.int64], centres: Floats, gaps: Floats) -> dealing.Near:
    """Return the near centres of the rows `ids` of the source, which are read in blocks as large as a shard."""
    near = min(tuning.NEAR, len(centres))
    found = [
        _near_in_host_memory(worker, worker.load.at(ids[part]), centres, near)
        for part in cut(len(ids), worker.job.plan.rows)
    ]
    distances, numbers = zip(*found, strict=True)
    return reached(worker, np.concatenate(distances), np.concatenate(numbers), gaps, ids)


def reached(worker: Worker, distances: Any, numbers: Any, gaps: Any, ids: Any) -> dealing.Near:
    metric = worker.job.record
    # squared distances order unit vectors as cosine distances do: 1 - cos is half the squared distance
    squared = metric.power == 2
    lengths = (distances, gaps) if squared else (metric.lengths(distances), metric.lengths(gaps))
    return dealing.Near(dealing.reaches(lengths[0], numbers, lengths[1], squared=squared), numbers, ids)


def _write_centres(worker: Worker, args: Any, made: tuple[Floats, Floats, dealing.ChosenShards]) -> Done:
    centres, gaps, chosen = made
    files = worker.job.files
    shards = np.stack([chosen.shards.first, chosen.shards.turns], axis=1)
    parts = {name: files.save(name, part) for name, part in zip(CENTRE_PARTS, (centres, gaps, shards), strict=True)}
    facts = {name: getattr(chosen, name) for name in ("covered", "copies", "largest")}
    return Done(parts, facts=facts | {"shards": chosen.shards.total, "margin": chosen.shards.margin})


MEANS = in_one_piece(lambda worker, args: None, _compute_means, _write_means)
CENTRES = in_one_piece(lambda worker, args: None, _compute_centres, _write_centres)
