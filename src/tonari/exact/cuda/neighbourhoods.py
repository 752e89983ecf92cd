"""Neighbourhoods of rows that no bound separates: which few points can be in the answers of which queries.

Rows of tight clusters are nearer to each other than their bounds, which grow with the distance from the common centre.
Among the points of one cluster alone, whose centre is near, the bounds are as small as the cluster. With c some row, q
a query whose k-th value so far is a distance V, and y a point of its answer,

    |y - c|  <=  |q - c| + |y - q|  <=  |q - c| + V

so that a search among the points within |q - c| + V of c is as good as one among all. A round takes some of the queries
as such c, drops those that are near to another one, and gives every query to the nearest of the rest, if that is near.

Distances are float64 products of form rows with a bound on their error, so that no point is missed. A neighbourhood
that saves less than a search of it takes is left out, and a round that saves little is the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tonari.exact.cuda.contraction import form_blocks
from tonari.exact.cuda.form import DeviceForm
from tonari.metrics import get_metric

CENTRES = 64  # queries that a round takes as centres
_APART = 2.0  # times its reach: a centre that is not so far from another one is dropped
_NEAR = 4.0  # times its reach: the farthest that a query may be from its centre
_LARGEST_SHARE = 0.25  # of the points in a neighbourhood
# Values of pairs that a neighbourhood has to save, of which a search takes some milliseconds: where all values would be
# compared, and where the points would be screened.
OF_VALUES, OF_SCREEN = 1 << 32, 1 << 40
_OF_ROUND = 8  # times as many have to be saved by a round
_SLACK = 1 + 2.0**-20  # more than the roundings of bounds
_TINY = 2.0**-70  # more than a distance loses by underflow


def reach_of(kth: Any, form: DeviceForm) -> Any:
    """Return upper bounds of distances of form rows whose values are returned as `kth`, float64."""
    kth = kth.double()
    distances = kth if get_metric(form.metric).root else kth.sqrt()
    return (distances * _SLACK + _TINY) * form.scale


def neighbourhoods(queries: Any, points: Any, form: DeviceForm, reach: Any, least: int) -> Iterator[tuple[Any, Any]]:
    """Yield queries, int64 (some,), and all points that may be in their answers, int64 (few,), ascending.

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
    while len(left) * len(points) * form.d >= _OF_ROUND * least:
        done = torch.zeros(len(left), dtype=torch.bool, device=points.device)
        saved = 0
        asking = queries if len(left) == len(queries) else queries[left]
        for mine, numbers in _round(asking, points, form, reach[left], least):
            done[mine] = True
            saved += len(mine) * len(points) * form.d
            yield left[mine], numbers
        if saved < _OF_ROUND * least:
            return
        left = left[~done]


def rehearse_distances(rows: Any, form: DeviceForm) -> None:
    """Launch what distances of rows on the device "meta" take."""
    import torch

    next(form_blocks(rows, form, torch.zeros(form.d, dtype=torch.float64, device=rows.device)))


def _round(queries: Any, points: Any, form: DeviceForm, reach: Any, least: int) -> Iterator[tuple[Any, Any]]:
    import torch

    n, d = points.shape
    origin = torch.zeros(d, dtype=torch.float64, device=points.device)
    step = -(-len(queries) // CENTRES)
    centres, lengths = map(torch.cat, zip(*form_blocks(queries[::step], form, origin), strict=True))
    apart = _squares(centres, lengths, centres, up=True).sqrt()
    kept = _far_apart(apart.tolist(), (_APART * reach[::step]).tolist())
    centres = centres[kept]
    # Of each block of queries only the nearest is kept: all distances would take more memory than the queries.
    found = [_squares(*block, centres, up=True).min(1) for block in form_blocks(queries, form, origin)]
    squares, nearest = map(torch.cat, zip(*found, strict=True))
    distances = squares.sqrt()
    near = distances <= _NEAR * reach  # also where both are infinite, which the next line takes back
    near &= (distances + reach).isfinite()
    farthest = torch.zeros(len(kept), dtype=torch.float64, device=points.device)
    farthest.scatter_reduce_(0, nearest[near], (distances + reach)[near], "amax")
    limits = (farthest * _SLACK) ** 2
    inside = torch.cat([_squares(*block, centres, up=False) <= limits for block in form_blocks(points, form, origin)])
    given = torch.bincount(nearest[near], minlength=len(kept)).tolist()
    for at, (rows, count) in enumerate(zip(given, inside.sum(0).tolist(), strict=True)):
        if count <= _LARGEST_SHARE * n and rows * (n - count) * d >= least:
            yield (near & (nearest == at)).nonzero()[:, 0], inside[:, at].nonzero()[:, 0]


def _squares(rows: Any, lengths: Any, centres: Any, *, up: bool) -> Any:
    """Return bounds of squared distances, float64: upper ones, or lower ones that may be below 0.

    A row without a form has none: its upper bound is infinite and its lower one -infinite.
    """
    own, others = (rows * rows).sum(1)[:, None], (centres * centres).sum(1)
    error = (own + others) * ((rows.shape[1] + 64) * 2.0**-50)
    found = own + others - 2 * (rows @ centres.mT)
    found = (found + error).clamp_min_(0) if up else found - error
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
