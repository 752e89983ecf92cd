"""Assign rows to overlapping shards so that near rows share a shard.

    centres         k-means of a sample of the rows (centres.py)
    shard_of        centres, bisected recursively such that shards have about equal sizes, overlaps included
    parts           if one centre has too many rows for a shard, they are divided by row number
    reaches         distances of a row from the borders between its nearest centre and other centres; a border is the
                    plane halfway between two centres. The distance is 0 on the border, and 1 / 2 at the nearest centre
    memberships     a row is in the shards of its nearest centre and of other near centres within the margin

Two neighbours can find each other if they share a shard. The true neighbours of a sample of rows are computed in
advance, and the margin is the smallest one at which enough of these neighbours share a shard with their row. With fewer
shards, fewer rows are in several shards, so the number of shards is the smallest one that can contain all rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tonari.core.rows.slices import cut
from tonari.shards import tuning
from tonari.shards.routes.cluster_centres import Floats, deal


class Shards(NamedTuple):
    """The assignment of rows to shards.

    Attributes
    ----------
    first : int64 of shape (centres,)
        The shard of each centre's rows, or the first of the shards that share them.
    turns : int64 of shape (centres,)
        The number of shards that share the rows nearest to each centre.
    margin : float
        A row is also in the shards of other centres whose reach (:class:`Near`) is at most this number.
    """

    first: Any
    turns: Any
    margin: float

    @property
    def total(self) -> int:
        """The number of shards."""
        return int((self.first + self.turns).max())

    def holds(self, shard: int) -> Any:
        """Return a mask of the centres with rows in a shard."""
        return (self.first <= shard) & (shard < self.first + self.turns)


class Near(NamedTuple):
    """Rows, with the centres near each of them.

    Attributes
    ----------
    reaches : floats of shape (rows, near)
        The distance to the border of each centre, in units of the distance between the two centres; 0 for the nearest
        one.
    centres : integers of shape (rows, near)
        The near centres of each row, nearest first.
    rows : integers of shape (rows,)
        The row number of each row.
    """

    reaches: Any
    centres: Any
    rows: Any

    def at(self, places: npt.NDArray[np.int64]) -> Near:
        """Return some of the rows, by their positions."""
        return Near(*(part[places] for part in self))


def reaches(distances: Any, centres: Any, gaps: Any, *, squared: bool) -> Any:
    """Return the distances of rows from the borders between their nearest centre and other near centres.

    A row at distances a and b >= a from two centres at distance g is (b² - a²) / 2g from the plane halfway between
    them. Division by g makes this number independent of the density of the data.

    Parameters
    ----------
    distances : floats of shape (rows, near), ascending
    centres : integers of shape (rows, near)
    gaps : floats of shape (c, c)
        The distances between all centres.
    squared : bool
        Whether distances are squared.

    Returns
    -------
    floats of shape (rows, near)
        0 if a centre is as near as the nearest one; inf if it cannot be computed.
    """
    first, apart = distances[:, :1], gaps[centres[:, :1], centres]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = (distances - first) / apart / 2
        if not squared:
            found *= distances / apart + first / apart
    found[found != found] = np.inf
    found[distances == first] = 0
    return found


def memberships(near: Near, shards: Shards) -> tuple[Any, Any]:
    """Return all pairs of a shard and one of its rows, as two int64 arrays in the order of (shard, row).

    Rows are positions in `near`. The result has NumPy arrays, or tensors on the device of `near`.
    """
    count = len(near.centres)
    of, kept = _kept(near, shards)
    if isinstance(of, np.ndarray):
        keys = np.sort((of * count + np.arange(count)[:, None])[kept])
    else:
        rows = kept.new_ones(count, dtype=of.dtype).cumsum(0) - 1
        keys = (of * count + rows[:, None])[kept].sort().values
    return keys // count, keys % count


def _kept(near: Near, shards: Shards) -> tuple[Any, Any]:
    """Return the shards of each row's near centres, and a mask that selects each shard of the row once."""
    of = _shards_of(near, shards)
    kept = near.reaches <= shards.margin
    earlier = of[:, :, None] == of[:, None, :]  # all pairs of centres in one step, so that a device needs few launches
    earlier = np.tril(earlier, -1) if isinstance(earlier, np.ndarray) else earlier.tril_(-1)
    earlier &= kept[:, None, :]
    kept &= ~earlier.any(-1)
    return of, kept


def _shards_of(near: Near, shards: Shards) -> Any:
    """Return the shard of each near centre of each row: integers of shape (rows, near)."""
    return shards.first[near.centres] + near.rows[:, None] % shards.turns[near.centres]


class ChosenShards(NamedTuple):
    """Shards, and their expected coverage and size.

    Attributes
    ----------
    covered : float
        The share of the sampled rows' neighbours that share a shard with their row.
    copies : float
        The mean number of shards that contain a row.
    largest : float
        Share of all rows in the largest shard.
    """

    shards: Shards
    covered: float
    copies: float
    largest: float


class Samples(NamedTuple):
    """Sampled rows, from which the coverage and the sizes of shards are estimated.

    Attributes
    ----------
    many : Near
        Rows drawn evenly from all rows, to estimate the sizes of shards.
    sample, others : Near
        Sampled rows, and the rows that are their neighbours.
    truth : int64 of shape (sampled rows, k)
        The true neighbours of the sampled rows, as positions in `others`.
    """

    many: Near
    sample: Near
    others: Near
    truth: npt.NDArray[np.int64]


def choose(centres: Floats, samples: Samples, *, shards: int, most: float, wanted: float) -> ChosenShards:
    """Choose the fewest shards that are small enough, with the smallest margin that covers enough true neighbours.

    Parameters
    ----------
    centres : float32 of shape (c, d)
    shards : int
        The largest number of shards of about equal weight to try; if some are still too large, they are bisected.
    most : float
        The largest share of all rows that a shard may have.
    wanted : float
        Share of the neighbours to cover, within the limits on the margin and on the size of shards.
    """
    weights = np.bincount(samples.many.centres[:, 0], minlength=len(centres)).astype(np.float64) + 1e-3
    most = max(most, 1.5 / len(samples.many.rows))
    count = min(shards, max(2, math.ceil(1 / most)))
    while True:
        balanced = weights.copy()
        for _ in range(tuning.BALANCING_TRIES):
            of = deal(centres, balanced, count)
            made = _with_margin(of, np.ones(len(centres), np.int64), samples, wanted, tuning.MOST_MARGIN)
            sizes = _shares(made, samples.many)
            # either all shards fit, or no shard has free room
            if sizes.max() <= most or sizes.sum() > tuning.FULL * most * count:
                break
            balanced *= np.sqrt(np.maximum(sizes / sizes.mean(), tuning.LEAST_CHANGE))[of]
        if count >= shards or sizes.max() <= most:
            return _cut(made, of, centres, balanced, samples, most, wanted)
        count = min(shards, max(count + 1, round(count * tuning.MORE_SHARDS), math.ceil(sizes.sum() / most)))


def _cut(
    made: Shards,
    of: npt.NDArray[np.int64],
    centres: Floats,
    weights: npt.NDArray[np.float64],
    samples: Samples,
    most: float,
    wanted: float,
) -> ChosenShards:
    """Bisect the shards that are too large.

    If none can be bisected, reduce the margin or divide the rows of one centre.
    """
    turns, limit = made.turns, tuning.MOST_MARGIN
    while True:
        sizes = _shares(made, samples.many)
        large = np.flatnonzero(sizes > most)
        if not len(large) or turns.max() * most > tuning.MOST_TURNS:
            return ChosenShards(made, _covered(made, samples), float(sizes.sum()), float(sizes.max()))
        divided = False
        some = np.concatenate([of[made.holds(shard)] for shard in large.tolist()])
        for shard in np.flatnonzero(np.bincount(some)).tolist():
            own = np.flatnonzero(of == shard)
            if len(own) > 1:
                of[own[deal(centres[own], weights[own], 2) == 1]] = of.max() + 1
                divided = True
        if not divided and made.margin:
            limit = made.margin / 2 if made.margin > tuning.LEAST_MARGIN else 0.0
        elif not divided:  # Some shards of one centre are still too large: duplicates, or dense clusters.
            excess = np.zeros(len(turns))  # size of the largest shard of each centre, as a multiple of `most`
            for shard in large.tolist():
                own = made.holds(shard)
                excess[own] = np.maximum(excess[own], sizes[shard] / most * 1.01)
            turns = np.where(excess > 0, np.ceil(turns * excess), turns).astype(np.int64)
        made = _with_margin(of, turns, samples, wanted, limit)


def _with_margin(
    of: npt.NDArray[np.int64], turns: npt.NDArray[np.int64], samples: Samples, wanted: float, limit: float
) -> Shards:
    """Return shards with the smallest margin that covers the wanted share of neighbours, or with the largest margin."""
    made = _numbered(of, turns, limit)
    (sample, sample_margins), (others, others_margins) = (
        (_shards_of(near, made), near.reaches) for near in (samples.sample, samples.others)
    )
    needed = np.empty(samples.truth.size)
    width = samples.truth.shape[1]
    for part in cut(len(needed), tuning.PAIRED):
        rows, near = np.arange(part.start, part.stop) // width, samples.truth.reshape(-1)[part]
        same = sample[rows, :, None] == others[near, None, :]
        margins = np.maximum(sample_margins[rows, :, None], others_margins[near, None, :])
        needed[part] = np.where(same, margins, np.inf).min(axis=(1, 2))
    least = np.sort(needed)[max(0, math.ceil(wanted * len(needed)) - 1)]
    return made._replace(margin=min(limit, float(least)))


def _numbered(of: npt.NDArray[np.int64], turns: npt.NDArray[np.int64], margin: float) -> Shards:
    """Renumber the shards such that shards that share the rows of one centre have consecutive numbers."""
    sizes = np.zeros(of.max() + 1, np.int64)
    np.maximum.at(sizes, of, turns)
    begins = np.cumsum(sizes) - sizes
    return Shards(begins[of], turns.copy(), margin)


def _covered(shards: Shards, samples: Samples) -> float:
    """Return the share of the sampled rows' true neighbours that are in a shard with their row."""
    inside = []
    for near in (samples.sample, samples.others):
        of, rows = memberships(near, shards)
        held = np.zeros((len(near.rows), shards.total), bool)
        held[rows, of] = True
        inside.append(held)
    return float(
        np.mean([(own & inside[1][near]).any(axis=1) for own, near in zip(inside[0], samples.truth, strict=True)])
    )


def _shares(shards: Shards, near: Near) -> npt.NDArray[np.float64]:
    """Return the estimated share of all rows that each shard contains, judging by the sampled rows `near`."""
    of, kept = _kept(near, shards)
    return np.bincount(of[kept], minlength=shards.total) / len(near.rows)
