"""Rows in float16, in which squared L2 orders pairs as the metric does, or nearly so: what the start compares.

    euclidean, sqeuclidean, elementwise        centred; of elementwise metrics a stand-in, whose order is not theirs
    cosine, correlation                        each row divided by its norm, for correlation less its mean
    inner_product                              as they are

A pair's score is query term + member term - 2 <q, x>, made to be at least about 0: terms are squared norms, for
inner_product 2 |q| max |x| and 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.metrics import get_metric

STEP = 32  # columns that a row is filled up to with zeros
_BLOCK = 1 << 22  # values at once
SHORT = 128  # columns of a row that kernels take whole
_LARGEST = 256.0  # magnitude that the rows are scaled to


class Form(NamedTuple):
    """Rows that stand for the points.

    Attributes
    ----------
    rows : float16 tensor of shape (n, d rounded up to whole steps)
    query_terms, member_terms : float32 tensors of shape (n,)
    """

    rows: Any
    query_terms: Any
    member_terms: Any


def step_of(width: int) -> int:
    """Columns of formed rows that a kernel takes at once: all of a short row, which then stays in registers."""
    if width <= SHORT:
        return 1 << (width - 1).bit_length()
    return 64 if width % 64 == 0 else STEP


def form_of(points: Any, metric: str) -> Form:
    """The form of points, a tensor of shape (n, d) with finite values."""
    n, d = points.shape
    rows = torch.zeros((n, -(-d // STEP) * STEP), dtype=torch.float16, device=points.device)
    step = max(1, _BLOCK // d)
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
    """Query and member terms of formed rows: of inner products, or of squared L2 distances."""
    squares = torch.empty(len(rows), dtype=torch.float32, device=rows.device)
    step = max(1, _BLOCK // rows.shape[1])
    for begin in range(0, len(rows), step):
        here = slice(begin, begin + step)
        squares[here] = rows[here].float().square_().sum(1)
    if products:
        norms = squares.sqrt()
        return 2 * norms * norms.amax(), torch.zeros_like(squares)
    return squares, squares


def _range_of(points: Any, blocks: list[slice], *, moved: bool) -> tuple[Any, Any]:
    """The mean if rows are moved there, else 0, and the scale that gives the largest entry its magnitude."""
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
