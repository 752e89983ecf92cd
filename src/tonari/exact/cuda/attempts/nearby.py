"""Neighbourhoods of rows that no bound separates: which few points can be in the answers of which queries.

Rows of tight clusters are nearer to each other than their bounds, which grow with the distance from the common centre.
Among the points of one cluster alone, whose centre is near, the bounds are as small as the cluster. With c some row, q
a query whose k-th value so far is a distance V, and y a point of its answer,

    |y - c|  <=  |q - c| + |y - q|  <=  |q - c| + V

so that a search among the points within |q - c| + V of c is as good as one among all. A round takes some of the queries
as such c, drops those that are near to another one, and gives every query to the nearest of the rest, if that is near.

Distances are float64 products of form rows with a bound on their error, so that no point is missed. A neighbourhood
that saves less than a search of it takes is left out, and a round that saves little is the last. Torch makes all of
this, so that no kernel is compiled for it.

An attempt cannot prove a row that has more points than the attempt refines so near that their bounds do not separate
them from the row itself. A few rows and points tell whether most rows are such, and have neighbourhoods:

    |q' - x'|^2  <=  12 d u |q'|^2        u = 2^-24: all levels have errors of 2^-24 for each of 4 d additions and more,
                                          relative to a, |q'| |x'| and |q'| |x'|, which are about |q'|^2 (exactness.md)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tonari.exact.cuda.attempts.attempt import Attempt, Unproved
from tonari.exact.cuda.rows.contraction import BLOCK_VALUES
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.metrics import get_metric

CENTRES = 64  # queries that a round takes as centres
BLOCK_ROWS = 32768  # form rows in memory at once: each has a distance to every centre
_APART = 2.0  # times its reach: a centre that is not so far from another one is dropped
_NEAR = 4.0  # times its reach: the farthest that a query may be from its centre
_LARGEST_SHARE = 0.25  # of the points in a neighbourhood
# Values of pairs that a neighbourhood has to save, of which a search takes some milliseconds: where all values would be
# compared, and where the points would be screened.
OF_VALUES, OF_SCREEN = 1 << 32, 1 << 40
_OF_ROUND = 8  # times as many have to be saved by a round
_SAMPLE = 4096  # points by which are_inseparable decides
_SLACK = 1 + 2.0**-20  # more than the roundings of bounds
_TINY = 2.0**-70  # more than a distance loses by underflow
_LARGEST = 1e30  # square of the length of a form row that has distances: keeps all sums finite


class Nearby(Attempt):
    """Rows among the points near to them, where that saves much.

    Parameters
    ----------
    least : int
        Values that a neighbourhood has to save: OF_VALUES or OF_SCREEN.
    """

    name = "nearby"

    def __init__(self, least: int) -> None:
        self.least = least
        self.when = f"among the points near to rows, where a neighbourhood saves {least} values and more"

    def worth(self, left: Unproved) -> Any:
        """Return the rows that are left."""
        if not (left.plan.subsets and get_metric(left.plan.metric).squares):
            return None
        rows = left.look()
        return rows if is_worth_a_round(len(rows), left.points, self.least) else None

    def run(self, left: Unproved, given: Any) -> None:
        for found in neighbourhoods(*_places_of(left, given), self.least):
            with left.expecting_among(found.sizes):
                for some, numbers in found:
                    left.among(numbers, given[some])


class NearbyAtOnce(Nearby):
    """The same where the levels would prove few rows."""

    name = "nearby at once"

    def __init__(self, least: int) -> None:
        super().__init__(least)
        self.when += ", if most rows are left, and levels can prove few of them, a search nearby most"

    def worth(self, left: Unproved) -> Any:
        """Return the rows that are left."""
        rows = super().worth(left)
        if rows is None or 2 * len(rows) < len(left.proved):
            return None
        return rows if are_inseparable(*_places_of(left, rows), left.search.most_refined) else None


def _places_of(left: Unproved, rows: Any) -> tuple[Any, Any, DeviceForm, Any]:
    """Return some queries, the points, their form, and how far the k-th known neighbours of the queries are."""
    form = left.search.prepared.form
    return left.search.queries[rows], left.points, form, reach_of(left.found.distances[rows, -1], form)


@dataclass(frozen=True)
class Round:
    """Neighbourhoods that are known at once.

    Attributes
    ----------
    sizes : list of (int, int)
        Of each, the number of queries and that of points.
    """

    sizes: list[tuple[int, int]]
    _places: list[int]  # of their centres
    _left: Any  # int64 (some,): the queries of the round
    _nearest: Any  # int64 (some,): the centre of each, -1 for none
    _inside: Any  # bool (n, centres)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Yield queries, int64 (some,), and all points that may be in their answers, int64 (few,), ascending."""
        for at in self._places:
            yield self._left[self._nearest == at], self._inside[:, at].nonzero()[:, 0]

    def others(self) -> Any:
        """Return the queries that have no neighbourhood here, int64."""
        import torch

        served = torch.tensor(self._places, dtype=torch.int64, device=self._left.device)
        return self._left[~torch.isin(self._nearest, served)]


def reach_of(kth: Any, form: DeviceForm) -> Any:
    """Return upper bounds of distances of form rows whose values are returned as `kth`, float64."""
    kth = kth.double()
    distances = kth if get_metric(form.metric).root else kth.sqrt()
    return (distances * _SLACK + _TINY) * form.scale


def neighbourhoods(queries: Any, points: Any, form: DeviceForm, reach: Any, least: int) -> Iterator[Round]:
    """Yield neighbourhoods, round by round.

    Waits for the device.

    Parameters
    ----------
    queries, points : tensors (rows, d) and (n, d)
    form : DeviceForm
        Of a metric of the family "squares".
    reach : float64 tensor (rows,)
        No less than the distance of form rows to the k-th best point that is known; infinite if none is.
    least : int
        Values that a neighbourhood has to save: OF_VALUES or OF_SCREEN.
    """
    import torch

    left = torch.arange(len(queries), device=points.device)
    while is_worth_a_round(len(left), points, least):
        found = _round(queries, points, form, reach, left, least)
        if found.sizes:
            yield found
        saved = sum(rows for rows, _ in found.sizes) * len(points) * form.d
        if saved < _OF_ROUND * least:
            return
        left = found.others()


def is_worth_a_round(rows: int, points: Any, least: int) -> bool:
    """Whether so many rows may save enough for a round."""
    n, d = points.shape
    return bool(rows * n * d >= _OF_ROUND * least)


def are_inseparable(queries: Any, points: Any, form: DeviceForm, reach: Any, most: int) -> bool:
    """Whether most of some rows have so many points near them that no attempt can prove them, and have neighbourhoods.

    An estimate from a few queries and points, in much less than a millisecond. Waits for the device.

    Parameters
    ----------
    queries, points, form, reach : as for :func:`neighbourhoods`
    most : int
        Points of a row that an attempt refines.
    """
    n, d = points.shape
    scale = float(form.scale)
    step = -(-len(queries) // CENTRES)
    some, lengths = _form_rows(queries[::step], form, scale)
    sample, sampled_lengths = _form_rows(points[:: -(-n // max(1, min(_SAMPLE, BLOCK_VALUES // d)))], form, scale)
    squares = _squares(sample, sampled_lengths, some, up=True)  # [points, queries]
    count, reach = len(sample), reach[::step]
    crowded = (squares <= 12 * d * 2.0**-24 * lengths).sum(0) * (n / count) > most
    resolved = reach**2 > _error(d) * lengths  # which distances of copies are not
    alone = (squares <= (2 * reach) ** 2).sum(0) <= _LARGEST_SHARE * count
    return 2 * int((crowded & resolved & alone).sum()) > len(some)


def _round(queries: Any, points: Any, form: DeviceForm, reach: Any, left: Any, least: int) -> Round:
    import torch

    n, d = points.shape
    scale = float(form.scale)
    if len(left) < len(queries):
        queries, reach = queries[left], reach[left]
    step = -(-len(queries) // CENTRES)
    centres, lengths = _form_rows(queries[::step], form, scale)
    centres.masked_fill_(lengths.isinf()[:, None], 0.0)  # any place will do
    apart = _squares(centres, lengths, centres, up=True).sqrt()
    kept = _far_apart(apart.tolist(), (_APART * reach[::step]).tolist())
    centres = centres[kept]
    # Of each block of queries only the nearest is kept: all distances would take more memory than the queries.
    found = [_squares(*block, centres, up=True).min(1) for block in _blocks(queries, form, scale)]
    squares, nearest = map(torch.cat, zip(*found, strict=True))
    distances = squares.sqrt()
    near = distances <= _NEAR * reach  # also where both are infinite, which the next line takes back
    near &= (distances + reach).isfinite()
    nearest = nearest.masked_fill_(~near, -1)
    farthest = torch.zeros(len(kept), dtype=torch.float64, device=points.device)
    farthest.scatter_reduce_(0, nearest[near], (distances + reach)[near], "amax")
    limits = (farthest * _SLACK) ** 2
    inside = torch.cat([_squares(*block, centres, up=False) <= limits for block in _blocks(points, form, scale)])
    given = torch.bincount(nearest[near], minlength=len(kept))
    rows, counts = torch.stack([given, inside.sum(0)]).tolist()
    chosen = [
        at for at in range(len(kept)) if counts[at] <= _LARGEST_SHARE * n and rows[at] * (n - counts[at]) * d >= least
    ]
    return Round([(rows[at], counts[at]) for at in chosen], chosen, left, nearest, inside)


def _blocks(rows: Any, form: DeviceForm, scale: float) -> Iterator[tuple[Any, Any]]:
    """Yield the form rows of all rows, and the squares of their lengths, a block at a time."""
    block = max(1, min(BLOCK_VALUES // form.d, BLOCK_ROWS))
    for begin in range(0, len(rows), block):
        yield _form_rows(rows[begin : begin + block], form, scale)


def _form_rows(rows: Any, form: DeviceForm, scale: float) -> tuple[Any, Any]:
    """Return form rows, float64 (some, d), and the squares of their lengths, infinite for rows that are too long.

    A scale is a power of two, so that a row has one rounding of each element. The sum reads rows of any dtype once.
    """
    import torch

    made = torch.add(-scale * form.centre, rows, alpha=scale)
    lengths = torch.linalg.vector_norm(made, dim=1).square_()
    return made, lengths.masked_fill_(~(lengths <= _LARGEST), float("inf"))


def _error(d: int) -> float:
    """Return a bound on the error of a squared distance, relative to the squares of both lengths."""
    return (d + 64) * 2.0**-50


def _squares(rows: Any, lengths: Any, centres: Any, *, up: bool) -> Any:
    """Return bounds of squared distances, float64: upper ones, or lower ones that may be below 0.

    A row that is too long has none: its upper bound is infinite and its lower one -infinite.
    """
    error = _error(rows.shape[1])
    sums = lengths[:, None] + (centres * centres).sum(1)
    found = sums.mul_(1 + error if up else 1 - error).addmm_(rows, centres.mT, alpha=-2)
    found = found.clamp_min_(0) if up else found
    return found.masked_fill_(lengths.isinf()[:, None], float("inf") if up else -float("inf"))


def _far_apart(distances: list[list[float]], least: list[float]) -> list[int]:
    """Return which of some rows to keep, in turn: those farther than `least` from all before that are kept.

    >>> _far_apart([[0, 1, 9], [1, 0, 8], [9, 8, 0]], [2, 2, 2])
    [0, 2]
    """
    kept: list[int] = []
    for at, (row, most) in enumerate(zip(distances, least, strict=True)):
        if all(row[other] > most for other in kept):
            kept.append(at)
    return kept
