"""Rows in float16, in which squared L2 orders pairs as the metric does, or nearly so: what the start compares.

    euclidean, sqeuclidean, l1, linf, chi2     centred; of the last three a stand-in, whose order is not theirs
    cosine, correlation                        each row divided by its norm, for correlation less its mean
    inner_product                              as they are

A pair's score is query term + member term - 2 <q, x>, made to be at least about 0: terms are squared norms, for
inner_product 2 |q| max |x| and 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

STEP = 32  # columns that a row is filled up to with zeros
_BLOCK = 1 << 16  # rows at once
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


def form_of(points: Any, metric: str) -> Form:
    """The form of points, a tensor of shape (n, d) with finite values."""
    n, d = points.shape
    rows = torch.zeros((n, -(-d // STEP) * STEP), dtype=torch.float16, device=points.device)
    squares = torch.empty(n, dtype=torch.float32, device=points.device)
    blocks = [slice(begin, min(begin + _BLOCK, n)) for begin in range(0, n, _BLOCK)]
    angular = metric in ("cosine", "correlation")
    centre, scale = 0.0, 1.0
    if not angular:
        if metric != "inner_product":
            centre = sum(points[block].double().sum(0) for block in blocks) / n
        largest = max(float((points[block].double() - centre).abs().amax()) for block in blocks)
        scale = _LARGEST / largest if largest > 0 else 1.0
    for block in blocks:
        given = points[block].double() if points.dtype == torch.float64 else points[block].float()
        if angular:
            if metric == "correlation":
                given = given - given.mean(1, keepdim=True)
            norms = torch.linalg.vector_norm(given, dim=1, keepdim=True)
            formed = torch.where(norms > 0, given / norms, 0.0)
        else:
            formed = (given - centre) * scale
        rows[block, :d] = formed.half()
        squares[block] = rows[block].float().square_().sum(1)
    if metric == "inner_product":
        norms = squares.sqrt()
        return Form(rows, 2 * norms * norms.amax(), torch.zeros_like(squares))
    return Form(rows, squares, squares)
