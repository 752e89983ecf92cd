"""Search unproved rows in neighbourhoods: the few points that can be in the answers of nearby queries.

Error bounds grow with the distance from the centre of all points, so distances within a tight cluster can be smaller
than their error bounds, and no bound proves the answer. A search among the points of that cluster alone subtracts the
cluster's own centre, and its error bounds are as small as the cluster. Let c be any row, V the k-th known distance of a
query q, and y a point of q's answer. Then

    |y - c|  <=  |q - c| + |y - q|  <=  |q - c| + V

so a search among the points within |q - c| + V of c finds the whole answer. The search proceeds in rounds. Each round
chooses some queries as centres c, drops every centre that is near another centre, and assigns each query to its nearest
centre, if that is near enough.

Distances are float64 products of form rows (rows/form.py) with a bound on their error, so no point is missed. A
neighbourhood is skipped if its search takes longer than it saves, and rounds end when one saves little. The module uses
only torch functions, so no kernel has to be compiled.

An attempt refines a limited number of points per row. It cannot prove a row if more points than that are so near that
the error bounds exceed their distances. A few rows and points suffice to estimate whether this holds for most rows, and
whether these rows have neighbourhoods. The test for a near point is

    |q' - x'|^2  <=  12 d u |q'|^2        u = 2^-24: all levels have errors of 2^-24 for each of 4 d additions and more,
                                          relative to a, |q'| |x'| and |q'| |x'|, which are about |q'|^2 (exactness.md)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.retries.attempt import Attempt, Unproved
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.metrics import get_metric

_SLACK = 1 + 2.0**-20  # exceeds all rounding errors of the bounds
_TINY = 2.0**-70  # exceeds the error that underflow causes in a distance
_LARGEST = 1e30  # longer rows (by squared length, in the form of the screen) are left out, so that all sums stay finite


class Nearby(Attempt):
    """Search unproved rows only among the points near them, if that saves much time.

    Parameters
    ----------
    least : int
        The minimum number of values (pairs x columns) that the search of a neighbourhood must save.
    """

    name = "nearby"

    def __init__(self, least: int) -> None:
        self.least = least
        self.when = f"among the points near the rows that are left, if each neighbourhood saves {least} values or more"

    def worth(self, left: Unproved) -> Any:
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
    """Search rows not certified as exact among the points near them, before retries that would certify few rows."""

    name = "nearby at once"

    def __init__(self, least: int) -> None:
        super().__init__(least)
        self.when += ", if most rows are left, and levels can prove few of them, a search nearby most"

    def worth(self, left: Unproved) -> Any:
        """Return the row numbers of the unproved rows; None if the attempt is not worth its time."""
        rows = super().worth(left)
        if rows is None or 2 * len(rows) < len(left.proved):
            return None
        return rows if are_inseparable(*_places_of(left, rows), left.search.most_refined) else None


def _places_of(left: Unproved, rows: Any) -> tuple[Any, Any, DeviceForm, Any]:
    """Return the arguments of :func:`neighbourhoods` for unproved rows: queries, points, form, and each row's reach."""
    form = left.search.prepared.form
    return left.search.queries[rows], left.points, form, reach_of(left.found.distances[rows, -1], form)


@dataclass(frozen=True)
class Round:
    """The neighbourhoods of one round: sets of queries, each with all points that may be in their answers.

    Attributes
    ----------
    sizes : list of (int, int)
        For each neighbourhood, the number of its queries and the number of its points.
    """

    sizes: list[tuple[int, int]]
    _places: list[int]  # indices of the centres that have neighbourhoods
    _left: Any  # int64 (rows,): the positions of the round's queries
    _nearest: Any  # int64 (rows,): index of the centre to which each query is assigned, -1: none
    _inside: Any  # bool (n, centres): whether a point may be a neighbour of a query assigned to the centre

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Yield, for each neighbourhood, the positions of its queries and the ascending row numbers of its points."""
        for at in self._places:
            yield self._left[self._nearest == at], self._inside[:, at].nonzero()[:, 0]

    def others(self) -> Any:
        """Return the positions of the queries that have no neighbourhood in this round, int64."""
        import torch

        served = torch.tensor(self._places, dtype=torch.int64, device=self._left.device)
        return self._left[~torch.isin(self._nearest, served)]


def reach_of(kth: Any, form: DeviceForm) -> Any:
    """Convert returned distances to upper bounds on the distances between rows in the form of the screen, float64."""
    kth = kth.double()
    distances = kth if get_metric(form.metric).root else kth.sqrt()
    return (distances * _SLACK + _TINY) * form.scale


def neighbourhoods(queries: Any, points: Any, form: DeviceForm, reach: Any, least: int) -> Iterator[Round]:
    """Yield rounds of neighbourhoods: sets of nearby queries, each with all points that may be in their answers.

    Waits for the device.

    Parameters
    ----------
    queries, points : tensors (rows, d) and (n, d)
    form : DeviceForm
        The form of a metric of the family "squares".
    reach : float64 tensor (rows,)
        An upper bound on the distance, between form rows, to the k-th best known point; infinite if fewer points are
        known.
    least : int
        The minimum number of values (pairs x columns) that the search of a neighbourhood must save.
    """
    import torch

    left = torch.arange(len(queries), device=points.device)
    while is_worth_a_round(len(left), points, least):
        found = _round(queries, points, form, reach, left, least)
        if found.sizes:
            yield found
        saved = sum(rows for rows, _ in found.sizes) * len(points) * form.d
        if saved < tuning.NEARBY_OF_ROUND * least:
            return
        left = found.others()


def is_worth_a_round(rows: int, points: Any, least: int) -> bool:
    """Whether one more round of neighbourhoods may save enough time, if `rows` rows are left."""
    n, d = points.shape
    return bool(rows * n * d >= tuning.NEARBY_OF_ROUND * least)


def are_inseparable(queries: Any, points: Any, form: DeviceForm, reach: Any, most: int) -> bool:
    """Whether most of these rows have more near points than error bounds can tell apart.

    A row counts only if few points are within twice its reach, so that it can have a neighbourhood.

    The estimate uses a few queries and points, and takes much less than a millisecond. Waits for the device.

    Parameters
    ----------
    queries, points, form, reach : as for :func:`neighbourhoods`
    most : int
        The number of points that an attempt refines per row.
    """
    n, d = points.shape
    scale = float(form.scale)
    step = -(-len(queries) // tuning.NEARBY_CENTRES)
    some, lengths = _form_rows(queries[::step], form, scale)
    sampled = max(1, min(tuning.NEARBY_SAMPLE, tuning.FORM_VALUES // d))
    sample, sampled_lengths = _form_rows(points[:: -(-n // sampled)], form, scale)
    squares = _squares(sample, sampled_lengths, some, up=True)  # [points, queries]
    count, reach = len(sample), reach[::step]
    crowded = (squares <= 12 * d * 2.0**-24 * lengths).sum(0) * (n / count) > most
    resolved = reach**2 > _error(d) * lengths  # False for rows at distances near 0, such as copies
    alone = (squares <= (2 * reach) ** 2).sum(0) <= tuning.NEARBY_SHARE * count
    return 2 * int((crowded & resolved & alone).sum()) > len(some)


def _round(queries: Any, points: Any, form: DeviceForm, reach: Any, left: Any, least: int) -> Round:
    import torch

    n, d = points.shape
    scale = float(form.scale)
    if len(left) < len(queries):
        queries, reach = queries[left], reach[left]
    step = -(-len(queries) // tuning.NEARBY_CENTRES)
    centres, lengths = _form_rows(queries[::step], form, scale)
    # Any row may become a centre, so rows that are too long are replaced by zeros.
    centres.masked_fill_(lengths.isinf()[:, None], 0.0)
    apart = _squares(centres, lengths, centres, up=True).sqrt()
    places = _far_apart(apart.tolist(), (tuning.NEARBY_APART * reach[::step]).tolist())
    centres = centres[places]
    # Keep only the nearest centre of each query: all distances would take more memory than the queries.
    found = [_squares(*block, centres, up=True).min(1) for block in _blocks(queries, form, scale)]
    squares, nearest = map(torch.cat, zip(*found, strict=True))
    distances = squares.sqrt()
    near = distances <= tuning.NEARBY_FARTHEST * reach  # also True for inf <= inf, which the next line corrects
    near &= (distances + reach).isfinite()
    nearest = nearest.masked_fill_(~near, -1)
    farthest = torch.zeros(len(places), dtype=torch.float64, device=points.device)
    farthest.scatter_reduce_(0, nearest[near], (distances + reach)[near], "amax")
    limits = (farthest * _SLACK) ** 2
    inside = torch.cat([_squares(*block, centres, up=False) <= limits for block in _blocks(points, form, scale)])
    row_counts = torch.bincount(nearest[near], minlength=len(places))
    rows, counts = torch.stack([row_counts, inside.sum(0)]).tolist()
    most = tuning.NEARBY_SHARE * n
    chosen = [at for at in range(len(places)) if counts[at] <= most and rows[at] * (n - counts[at]) * d >= least]
    return Round([(rows[at], counts[at]) for at in chosen], chosen, left, nearest, inside)


def _blocks(rows: Any, form: DeviceForm, scale: float) -> Iterator[tuple[Any, Any]]:
    """Yield rows in the form of the screen, float64, and their squared lengths, for one block of rows after another."""
    block = max(1, min(tuning.FORM_VALUES // form.d, tuning.NEARBY_ROWS))
    for begin in range(0, len(rows), block):
        yield _form_rows(rows[begin : begin + block], form, scale)


def _form_rows(rows: Any, form: DeviceForm, scale: float) -> tuple[Any, Any]:
    """Return rows in the form of the screen, float64, and squared lengths, infinite for rows that are too long.

    The scale is a power of two, so each element is rounded once. The addition reads rows of any dtype without a copy.
    """
    import torch

    form_rows = torch.add(-scale * form.centre, rows, alpha=scale)
    lengths = torch.linalg.vector_norm(form_rows, dim=1).square_()
    return form_rows, lengths.masked_fill_(~(lengths <= _LARGEST), float("inf"))


def _error(d: int) -> float:
    """Return a bound on the error of a squared distance, relative to the sum of both rows' squared lengths."""
    return (d + 64) * 2.0**-50


def _squares(rows: Any, lengths: Any, centres: Any, *, up: bool) -> Any:
    """Return bounds on the squared distances of rows from centres, float64: upper bounds if `up`, else lower ones.

    Lower bounds may be below 0. For rows that are too long, the bounds are infinity and -infinity.
    """
    error = _error(rows.shape[1])
    sums = lengths[:, None] + (centres * centres).sum(1)
    found = sums.mul_(1 + error if up else 1 - error).addmm_(rows, centres.mT, alpha=-2)
    found = found.clamp_min_(0) if up else found
    return found.masked_fill_(lengths.isinf()[:, None], float("inf") if up else -float("inf"))


def _far_apart(distances: list[list[float]], least: list[float]) -> list[int]:
    """Choose rows in order, each farther than its entry in `least` from all rows chosen before; return their indices.

    >>> _far_apart([[0, 1, 9], [1, 0, 8], [9, 8, 0]], [2, 2, 2])
    [0, 2]
    """
    places: list[int] = []
    for at, (row, most) in enumerate(zip(distances, least, strict=True)):
        if all(row[other] > most for other in places):
            places.append(at)
    return places
