"""The form of the points for the start: float16 rows whose squared L2 distances order pairs much as the metric does.

    euclidean, sqeuclidean                     centred
    elementwise metrics                        centred; a stand-in, whose order only resembles that of the metric
    cosine, correlation                        each row divided by its norm; for correlation, after subtracting its mean
    inner_product                              not centred

Except for cosine and correlation, rows are also scaled to a fixed largest magnitude. The score of a pair is
query term + member term - 2 <q, x>, which is nonnegative up to rounding: the terms are squared norms, or 2 |q| max |x|
and 0 for inner_product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.metrics import get_metric
from tonari.nn_descent.memory import formed_rows

STEP = 32  # rows are padded with zeros to a multiple of this many columns
SHORT = 128  # rows of up to this many columns are loaded whole by the kernels
_LARGEST = 256.0  # largest magnitude after scaling


class Form(NamedTuple):
    """Points transformed for the start; see the module docstring.

    Attributes
    ----------
    rows : float16 tensor of shape (n, d rounded up to a multiple of STEP)
    query_terms, member_terms : float32 tensors of shape (n,)
    """

    rows: Any
    query_terms: Any
    member_terms: Any


def step_of(width: int) -> int:
    """Return the columns that a kernel loads at once: all of a short row, which then stays in registers."""
    if width <= SHORT:
        return 1 << (width - 1).bit_length()
    return 64 if width % 64 == 0 else STEP


def form_of(points: Any, metric: str) -> Form:
    """Compute the form of points, a tensor of shape (n, d) with finite values."""
    n, d = points.shape
    rows = torch.zeros((n, -(-d // STEP) * STEP), dtype=torch.float16, device=points.device)
    step = formed_rows(n, d)
    blocks = [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]
    record = get_metric(metric)
    centre, scale = (0.0, 1.0) if record.angular else _range_of(points, blocks, moved=not record.products)
    for block in blocks:
        if record.angular:
            given = points[block].double() if points.dtype == torch.float64 else points[block].float()
            if record.centred:
                given = given - given.mean(1, keepdim=True)
            norms = torch.linalg.vector_norm(given, dim=1, keepdim=True)
            formed = torch.where(norms > 0, given / norms, 0.0)
        else:
            formed = (points[block].double() - centre) * scale
        rows[block, :d] = formed.half()
    return Form(rows, *terms_of(rows, products=record.products))


def terms_of(rows: Any, *, products: bool) -> tuple[Any, Any]:
    """Compute the query and member terms of transformed rows, for inner products or for squared L2 distances."""
    squares = torch.empty(len(rows), dtype=torch.float32, device=rows.device)
    step = formed_rows(*rows.shape)
    for begin in range(0, len(rows), step):
        here = slice(begin, begin + step)
        squares[here] = rows[here].float().square_().sum(1)
    if products:
        norms = squares.sqrt()
        return 2 * norms * norms.amax(), torch.zeros_like(squares)
    return squares, squares


def _range_of(points: Any, blocks: list[slice], *, moved: bool) -> tuple[Any, Any]:
    """Return the mean (0 unless `moved`), and the scale that maps the largest magnitude to _LARGEST."""
    centre = torch.zeros(points.shape[1], dtype=torch.float64, device=points.device)
    low, high = centre + torch.inf, centre - torch.inf
    for block in blocks:
        rows = points[block].double()
        low, high = torch.minimum(low, rows.amin(0)), torch.maximum(high, rows.amax(0))
        if moved:
            centre += rows.sum(0)
    centre /= len(points)
    largest = torch.maximum(high - centre, centre - low).amax()
    return centre, torch.where(largest > 0, _LARGEST / largest, 1.0).clamp(max=torch.finfo(torch.float64).max)
