"""Choose the number p of coordinates that the screen compares, by measurements on a sample of the points (pilot rows).

The pilot computes the exact k-th distance of each pilot row. For each p, it then counts the points whose contracted
rows are within this distance: candidates, whose exact values a search has to compute. It reads all points twice, for
the distances and for the counts. The time of a query follows from these counts and measured rates (costs/):

    screen(p) + count * (8 members of a group in p coordinates + one row of d)

The choice does not affect any answer, so float64 products without error bounds are good enough here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tonari.costs.model import brute_pair_seconds
from tonari.costs.rates import CARD
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.contraction import (
    Contraction,
    form_blocks,
    principal,
    sample_rows,
    sampled,
    with_directions,
)
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.exact.cuda.rows.groups import LEAST_GROUP


def largest_form_dim(d: int) -> int:
    """Return the largest number of coordinates to consider for d dimensions; 0 if none is worth considering."""
    return max((p for p in tuning.FORM_DIMS if 2 * p <= d), default=0)


def is_pilot_due(seconds: float) -> bool:
    """Whether a search that takes this many seconds without a contraction is long enough for a pilot on a sample.

    >>> is_pilot_due(1.9), is_pilot_due(2.1)
    (False, True)
    """
    return tuning.FORM_SHARE * seconds >= tuning.FORM_SECONDS


def pilot_bytes(d: int) -> int:
    """Return the maximum bytes that the pilot takes: a sample, a block of rows in all their forms, and distances."""
    rows = sample_rows(d)
    most = largest_form_dim(d)
    return 8 * (rows * (2 * d + 3 * most + 6 * tuning.FORM_PILOT_ROWS) + 4 * d * d + 3 * d * most)


def choose_contraction(points: Any, form: DeviceForm, k: int, m: int, columns: int) -> Contraction | None:
    """Return the contraction with which m queries are expected to be fastest; None if none saves much time.

    A search without a contraction is assumed to take as long as one of `columns` columns in float16. Waits for the
    device.
    """
    import torch

    n, d = points.shape
    most = largest_form_dim(d)
    rows, origin = sampled(points, form)
    if points.device.type == "meta":  # a rehearsal chooses nothing; one block is enough to launch all kernels
        next(form_blocks(points, form, origin))
        return None
    covariance = rows.mT @ rows
    found = principal(covariance, most - 1)
    # Sort the directions by eigenvalue, largest first, so that for every p the first p - 1 are the principal ones.
    turned = torch.linalg.eigh(found.mT @ covariance @ found).eigenvectors
    directions = found @ turned.flip(1)

    pilot = rows[:: -(-len(rows) // tuning.FORM_PILOT_ROWS)]
    lengths = torch.linalg.vector_norm(pilot, dim=1)
    # A pilot row is a point itself, so its limit is the (k + 1)-th smallest distance.
    best = torch.full((len(pilot), min(k, n - 1) + 1), float("inf"), dtype=torch.float64, device=rows.device)
    for block, sizes in form_blocks(points, form, origin):
        apart = _squares(pilot, lengths, block, sizes)
        best = torch.cat([best, apart], 1).topk(best.shape[1], largest=False).values
    limits = best[:, -1:] * (1 + 2.0**-20)
    considered = [p for p in tuning.FORM_DIMS if p <= most]
    counts = torch.zeros((len(considered), len(pilot)), dtype=torch.float64, device=rows.device)
    shown = list(_contracted(pilot @ directions, lengths, considered))
    for block, sizes in form_blocks(points, form, origin):
        for count, mine, theirs in zip(counts, shown, _contracted(block @ directions, sizes, considered), strict=True):
            count += (_squares(mine, lengths, theirs, sizes) <= limits).sum(1)
    counted = (torch.stack([counts.mean(1), counts.quantile(tuning.FORM_NEARLY_ALL, dim=1)], 1)).tolist()
    p = cheapest(counted, n, m, d, points.element_size(), columns)
    return None if p == 0 else with_directions(form, directions[:, : p - 1], origin)


def cheapest(counted: list[list[float]], n: int, m: int, d: int, itemsize: int, columns: int) -> int:
    """Return the number of coordinates with the least expected time; 0 if none is clearly faster than all dimensions.

    Parameters
    ----------
    counted : for each possible number of coordinates, (mean, FORM_NEARLY_ALL quantile) of the candidates per pilot row
    n, m, d : int
    itemsize : int
        Bytes per value of a point.
    columns : int
        The number of float16 columns that take as long to screen as all dimensions.

    Examples
    --------
    >>> left_over = [[900.0, 4000.0], [200.0, 300.0], [60.0, 90.0]]
    >>> cheapest(left_over, 10**6, 10**6, 960, 4, 960), cheapest(left_over, 10**6, 10**4, 960, 4, 960)
    (128, 0)
    """
    best, least = 0, tuning.FORM_WORTH * m * n * brute_pair_seconds(columns)
    for p, (mean, high) in zip(tuning.FORM_DIMS, counted, strict=False):
        left_over = mean * (LEAST_GROUP * 4 * p + 2 * d * itemsize) / CARD.read_rows
        contracting = 5 * 8 * (n + m) * d / CARD.read_rows  # seconds to write, read and transform form rows in float64
        seconds = m * (n * brute_pair_seconds(p) + left_over) + contracting
        if high <= tuning.FORM_MOST_LEFT and seconds < least:
            best, least = p, seconds
    return best


def _squares(pilot: Any, lengths: Any, rows: Any, sizes: Any) -> Any:
    """Return the squared distances of pilot rows from `rows`; `lengths` and `sizes` are the lengths of both."""
    return ((lengths * lengths)[:, None] + sizes * sizes - 2 * (pilot @ rows.mT)).clamp_min_(0)


def _contracted(along: Any, lengths: Any, considered: list[int]) -> Iterator[Any]:
    """Yield rows contracted to p coordinates, for each p in `considered`; `along` has coordinates in all directions."""
    import torch

    for p in considered:
        leading = along[:, : p - 1]
        beside = (lengths * lengths - (leading * leading).sum(1)).clamp_min(0).sqrt()
        yield torch.cat([leading, beside[:, None]], 1)
