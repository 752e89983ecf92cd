"""How many coordinates to screen: measured on pilot rows, some of the points, when points are prepared.

With the exact k-th distance as threshold, the points that contracted rows leave over are counted for each number of
coordinates p: all points are read twice, for the distances and for the counts. Seconds of a query follow from the
measured rates (costs/):

    screen(p) + left over * (8 members of a group in p coordinates + one row of d)

Every answer is the same whatever is chosen, so products of float64 without error bounds do here.
"""

from __future__ import annotations

from typing import Any

from tonari.costs.model import brute_pair_seconds
from tonari.costs.rates import CARD
from tonari.exact.cuda.contraction import Contraction, form_blocks, principal, sample_rows, sampled, with_directions
from tonari.exact.cuda.form import DeviceForm
from tonari.exact.cuda.groups import LEAST_GROUP

FORM_DIMS = (32, 64, 128, 256)
PILOT_ROWS = 128
WORTH = 0.7  # most seconds of a contraction, relative to those of all dimensions
MOST_LEFT = 512  # candidates of a row for which a search can widen (contracted_search.py)
NEARLY_ALL = 0.95  # of the rows may have no more candidates than that


def largest_form_dim(d: int) -> int:
    """Return the largest number of coordinates that is considered for d dimensions, 0 if none is."""
    return max((p for p in FORM_DIMS if 2 * p <= d), default=0)


def pilot_bytes(d: int) -> int:
    """Return the most bytes that the choice takes: a sample, a block of form rows, and distances of pilot rows."""
    rows = sample_rows(d)
    return 8 * (2 * rows * (d + largest_form_dim(d)) + 6 * PILOT_ROWS * rows + 4 * d * d + 3 * d * largest_form_dim(d))


def choose_contraction(points: Any, form: DeviceForm, k: int, m: int) -> Contraction | None:
    """Return the contraction that is expected to answer m queries fastest, None if none is clearly faster than none.

    Waits for the device.
    """
    import torch

    n, d = points.shape
    most = largest_form_dim(d)
    rows, origin = sampled(points, form)
    covariance = rows.mT @ rows
    found = principal(covariance, most - 1)
    # The first p - 1 of them are to be the principal ones for every p.
    turned = torch.linalg.eigh(found.mT @ covariance @ found).eigenvectors
    directions = found @ turned.flip(1)

    pilot = rows[:: -(-len(rows) // PILOT_ROWS)]
    # Each pilot row is a point: one more than k are within its limit.
    best = torch.full((len(pilot), min(k, n - 1) + 1), float("inf"), dtype=torch.float64, device=rows.device)
    for block, _ in form_blocks(points, form, origin):
        best = torch.cat([best, _squares(pilot, block)], 1).topk(best.shape[1], largest=False).values
    limits = best[:, -1:] * (1 + 2.0**-20)
    considered = [p for p in FORM_DIMS if p <= most]
    counts = torch.zeros((len(considered), len(pilot)), dtype=torch.float64, device=rows.device)
    for block, _ in form_blocks(points, form, origin):
        for at, p in enumerate(considered):
            y, beside = _parts(block, directions[:, : p - 1])
            pilot_y, pilot_beside = _parts(pilot, directions[:, : p - 1])
            apart = _squares(pilot_y, y) + (pilot_beside[:, None] - beside) ** 2
            counts[at] += (apart <= limits).sum(1)
    counted = (torch.stack([counts.mean(1), counts.quantile(NEARLY_ALL, dim=1)], 1)).tolist()
    p = cheapest(counted, n, m, d, points.element_size())
    return None if p == 0 else with_directions(form, directions[:, : p - 1], origin)


def cheapest(counted: list[list[float]], n: int, m: int, d: int, itemsize: int) -> int:
    """Return the number of coordinates that takes the least time, 0 if none takes clearly less than all dimensions.

    Parameters
    ----------
    counted : for each of FORM_DIMS that is considered, the mean of points left over, and what nearly all rows reach
    n, m, d : int
    itemsize : int
        Bytes per value of a point.

    Examples
    --------
    >>> left_over = [[900.0, 4000.0], [200.0, 300.0], [60.0, 90.0]]
    >>> cheapest(left_over, 10**6, 10**6, 960, 4), cheapest(left_over, 10**6, 10**4, 960, 4)
    (128, 0)
    """
    best, least = 0, WORTH * m * n * brute_pair_seconds(d)
    for p, (mean, high) in zip(FORM_DIMS, counted, strict=False):
        left_over = mean * (LEAST_GROUP * 4 * p + 2 * d * itemsize) / CARD.read_rows
        contracting = 5 * 8 * (n + m) * d / CARD.read_rows  # form rows in float64 are written, read and changed
        seconds = m * (n * brute_pair_seconds(p) + left_over) + contracting
        if high <= MOST_LEFT and seconds < least:
            best, least = p, seconds
    return best


def _squares(pilot: Any, rows: Any) -> Any:
    """Return the squared distances of the pilot rows from other rows."""
    lengths, others = (_lengths(part) for part in (pilot, rows))
    return (lengths[:, None] + others - 2 * (pilot @ rows.mT)).clamp_min_(0)


def _lengths(rows: Any) -> Any:
    """Return the squared length of each row."""
    return (rows * rows).sum(1)


def _parts(rows: Any, directions: Any) -> tuple[Any, Any]:
    """Return rows along the directions, and the lengths of what these leave out."""
    along = rows @ directions
    return along, (_lengths(rows) - _lengths(along)).clamp_min(0).sqrt()
