"""Compute centres by k-means and the distances between them, and group near centres into shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.rows.draws import Purpose, generator
from tonari.core.rows.slices import cut
from tonari.shards import tuning

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
