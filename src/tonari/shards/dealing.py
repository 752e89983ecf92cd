"""Deal rows to shards so that near rows share one: clusters, shards of near clusters, and rows in several shards.

    centres         k-means of a sample of the rows
    shard_of        centres cut in two along their first principal axis, again and again, into shards of equal weight
    memberships     a row is in the shard of its nearest centre, and in those of other near centres that are at most
                    1 + margin times as far

Two neighbours are found if they share a shard. What share of neighbours do is measured before anything is built, on
rows whose true neighbours are known, and the margin is chosen by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.slices import cut

NEAR = 8  # centres per row that are looked at
MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
_ROUNDS = 5  # of k-means
_SUMMED_BYTES = 4 << 20  # of rows, as float64, that are added up at a time

Floats = npt.NDArray[np.float32]
Nearest = Callable[[Floats, Floats, int], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


def train(rows: Floats, count: int, nearest: Nearest, seed: int) -> Floats:
    """Return the centres of k-means; `nearest(rows, centres, k)` gives distances and numbers of the nearest centres.

    An empty cluster keeps its centre.
    """
    drawn = np.sort(np.random.default_rng(seed).choice(len(rows), count, replace=False))
    centres = rows[drawn].copy()
    for _ in range(_ROUNDS):
        of = nearest(rows, centres, 1)[1][:, 0]
        sums, sizes = np.zeros(centres.shape), np.bincount(of, minlength=count)
        for part in cut(len(rows), max(1, _SUMMED_BYTES // sums[0].nbytes)):
            order = np.argsort(of[part], kind="stable")
            present, begins = np.unique(of[part][order], return_index=True)
            sums[present] += np.add.reduceat(rows[part][order].astype(np.float64), begins, axis=0)
        centres[sizes > 0] = sums[sizes > 0] / sizes[sizes > 0, None]
    return centres


def deal(centres: Floats, weights: npt.NDArray[np.float64], shards: int) -> npt.NDArray[np.int64]:
    """Return the shard of each centre: near centres together, about the same weight in each shard.

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
        weight, here = weights[some], centres[some].astype(np.float64)
        here = (here - np.average(here, axis=0, weights=weight)) * np.sqrt(weight)[:, None]
        axis = np.linalg.eigh(here.T @ here)[1][:, -1]
        axis *= np.sign(axis[np.abs(axis).argmax()])  # either sign would do, but always the same
        order = np.argsort(centres[some] @ axis, kind="stable")
        share = np.cumsum(np.append(0.0, weight[order])) / weight.sum()
        at = int(np.abs(share - (middle - begin) / (end - begin)).argmin())
        at = min(max(at, middle - begin), len(some) - (end - middle))
        todo += [(some[order[:at]], begin, middle), (some[order[at:]], middle, end)]
    return of


def memberships(
    distances: npt.NDArray[Any], near: npt.NDArray[Any], shard_of: npt.NDArray[np.int64], margin: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return pairs (shard, row) in order: the shards that rows are in, by the distances of their near centres."""
    close = distances <= (1 + margin) * distances[:, :1]
    close[:, 0] = True
    shards = np.where(close, shard_of[near], -1)
    shards.sort(axis=1)
    first = np.ones(shards.shape, bool)
    first[:, 1:] = shards[:, 1:] != shards[:, :-1]
    rows, columns = np.nonzero(first & (shards >= 0))
    of = shards[rows, columns]
    order = np.lexsort((rows, of))
    return of[order], rows[order]


class Dealt(NamedTuple):
    """Shards, and what is expected of them.

    Attributes
    ----------
    shard_of : int64 of shape (centres,)
    shards : int
    margin : float
    covered : float
        Share of the neighbours of sampled rows that share a shard with them.
    copies : float
        Shards per row.
    largest : float
        Share of all rows in the largest shard.
    """

    shard_of: npt.NDArray[np.int64]
    shards: int
    margin: float
    covered: float
    copies: float
    largest: float


def choose(
    centres: Floats,
    sample: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    theirs: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    truth: npt.NDArray[np.int64],
    *,
    shards: int,
    most: float,
    wanted: float,
) -> Dealt:
    """Choose the number of shards and the margin.

    Parameters
    ----------
    centres : float32 of shape (c, d)
    sample, theirs : (distances, numbers) of near centres, ascending
        Of sampled rows, and of the rows that are their neighbours.
    truth : int64 of shape (rows, k)
        Their neighbours, as rows of `theirs`.
    shards : int
        The least number.
    most : float
        The largest share of all rows that a shard may have.
    wanted : float
        Share of the neighbours to cover, as far as margins go.
    """
    weights = np.bincount(sample[1][:, 0], minlength=len(centres)).astype(np.float64) + 1e-3
    while True:
        of = deal(centres, weights, shards)
        found = [_measure(of, shards, margin, sample, theirs, truth) for margin in MARGINS]
        enough = [dealt for dealt in found if dealt.covered >= wanted]
        best = enough[0] if enough else found[-1]
        if best.largest <= most or shards >= len(centres) // 2:
            return best
        shards = min(len(centres) // 2, max(shards + 1, int(shards * best.largest / most)))


def _measure(
    shard_of: npt.NDArray[np.int64],
    shards: int,
    margin: float,
    sample: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    theirs: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    truth: npt.NDArray[np.int64],
) -> Dealt:
    inside = []
    for distances, near in (sample, theirs):
        of, rows = memberships(distances, near, shard_of, margin)
        held = np.zeros((len(near), shards), bool)
        held[rows, of] = True
        inside.append(held)
    covered = float((inside[0][:, None, :] & inside[1][truth]).any(axis=2).mean())
    sizes = inside[0].mean(axis=0)
    return Dealt(shard_of, shards, margin, covered, float(sizes.sum()), float(sizes.max()))
