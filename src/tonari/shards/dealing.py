"""Deal rows to shards so that near rows share one: clusters, shards of near clusters, and rows in several shards.

    centres         k-means of a sample of the rows
    shard_of        centres cut in two along their first principal axis, again and again, into shards of equal weight
    memberships     a row is in the shard of its nearest centre, and in those of other near centres that are at most
                    1 + margin times as far

Shards with too many rows are cut in two. Two neighbours are found if they share a shard. What share of neighbours do is
measured before anything is built, on rows whose true neighbours are known, and the margin is chosen by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.errors import BudgetExceeded

NEAR = 8  # centres per row that are looked at
MARGINS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
_ROUNDS = 5  # of k-means

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
        order = np.argsort(of, kind="stable")
        present, begins = np.unique(of[order], return_index=True)
        sums = np.add.reduceat(rows[order].astype(np.float64), begins, axis=0)
        centres[present] = sums / np.diff(np.append(begins, len(of)))[:, None]
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
        share = np.cumsum(weight[order]) / weight.sum()
        cut = 1 + int(np.abs(share - (middle - begin) / (end - begin)).argmin())
        cut = min(max(cut, middle - begin), len(some) - (end - middle))
        todo += [(some[order[:cut]], begin, middle), (some[order[cut:]], middle, end)]
    return of


def memberships(distances: Any, near: Any, shard_of: Any, margin: float) -> tuple[Any, Any]:
    """Return pairs (shard, row) in order: the shards that rows are in, by the distances of their near centres.

    All are NumPy arrays, or all are tensors on one device; numbers are int64.
    """
    count, width = near.shape
    of = shard_of[near]
    kept = distances <= (1 + margin) * distances[:, :1]
    kept[:, 0] = True
    for later in range(1, width):
        for before in range(later):
            kept[:, later] &= ~(kept[:, before] & (of[:, before] == of[:, later]))
    if isinstance(near, np.ndarray):
        keys = np.sort((of * count + np.arange(count)[:, None])[kept])
    else:
        rows = kept.new_ones(count, dtype=of.dtype).cumsum(0) - 1
        keys = (of * count + rows[:, None])[kept].sort().values
    return keys // count, keys % count


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


class Seen(NamedTuple):
    """Rows by which shards are judged: distances and numbers of their near centres, ascending.

    Attributes
    ----------
    many : (distances, numbers)
        Of rows drawn evenly, for sizes.
    sample, others : (distances, numbers)
        Of sampled rows, and of the rows that are their neighbours.
    truth : int64 of shape (sampled rows, k)
        Their neighbours, as rows of `others`.
    """

    many: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    sample: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    others: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    truth: npt.NDArray[np.int64]


def choose(centres: Floats, seen: Seen, *, shards: int, most: float, wanted: float) -> Dealt:
    """Choose shards and the margin: the least margin that covers enough; shards that are too large are cut in two.

    Parameters
    ----------
    centres : float32 of shape (c, d)
    seen : Seen
    shards : int
        The number to begin with.
    most : float
        The largest share of all rows that a shard may have.
    wanted : float
        Share of the neighbours to cover, as far as margins go and shards of one centre stay small enough.

    Raises
    ------
    BudgetExceeded
        The rows of one centre are too many by themselves.
    """
    weights = np.bincount(seen.many[1][:, 0], minlength=len(centres)).astype(np.float64) + 1e-3
    of, margins = deal(centres, weights, shards), len(MARGINS)
    while True:
        for margin in MARGINS[:margins]:
            covered = _covered(of, margin, seen)
            if covered >= wanted:
                break
        sizes = _shares(of, margin, seen.many)
        large = np.flatnonzero(sizes > most)
        if not len(large):
            return Dealt(of, len(sizes), margin, covered, float(sizes.sum()), float(sizes.max()))
        cut = False
        for shard in large.tolist():
            own = np.flatnonzero(of == shard)
            if len(own) > 1:
                of[own[deal(centres[own], weights[own], 2) == 1]] = of.max() + 1
                cut = True
        if not cut:
            margins = MARGINS.index(margin)
            if not margins:
                raise BudgetExceeded(
                    f"near rows do not fit the memory together: {sizes.max():.2%} of all have the same nearest "
                    f"centre, and a shard may have {most:.2%}; allow more memory, or use method='exact' or 'ggm'"
                )


def _inside(
    of: npt.NDArray[np.int64], margin: float, rows: tuple[npt.NDArray[Any], npt.NDArray[Any]]
) -> npt.NDArray[np.bool_]:
    """Return whether each row is in each shard."""
    shards, members = memberships(*rows, of, margin)
    held = np.zeros((len(rows[1]), of.max() + 1), bool)
    held[members, shards] = True
    return held


def _covered(of: npt.NDArray[np.int64], margin: float, seen: Seen) -> float:
    """Return the share of the sample's neighbours that share a shard with it."""
    ours, theirs = (_inside(of, margin, rows) for rows in (seen.sample, seen.others))
    return float(np.mean([(own & theirs[near]).any(axis=1) for own, near in zip(ours, seen.truth, strict=True)]))


def _shares(
    of: npt.NDArray[np.int64], margin: float, rows: tuple[npt.NDArray[Any], npt.NDArray[Any]]
) -> npt.NDArray[np.float64]:
    """Return the share of all rows that each shard has."""
    shards, _ = memberships(*rows, of, margin)
    return np.bincount(shards, minlength=int(of.max()) + 1) / len(rows[1])
