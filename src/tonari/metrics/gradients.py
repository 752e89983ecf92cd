"""Distances with gradients: for torch, the distances of a search become a differentiable function of the rows.

The values are those of the search, bit for bit. The backward pass recomputes the value of each pair from its two rows,
in float64 and in blocks, by the formulas of ``definitions.py``, so that only the rows of one block are copied. A small
enough change of the rows does not change which points are nearest, so indices do not contribute to the derivative.

Where a definition has no derivative, the gradient is 0: for two equal rows (euclidean), a row of zeros (cosine), a
constant row (correlation), and equal elements (l1, canberra, powers). For linf, tied largest elements share the
gradient equally.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics import tuning

Found = TypeVar("Found", Neighbors, RadiusNeighbors)


def _euclidean(q: Tensor, x: Tensor) -> Tensor:
    squared = (q - x).square().sum(1)
    return torch.where(squared > 0, squared, torch.inf).rsqrt() * squared


def _cosine(q: Tensor, x: Tensor) -> Tensor:
    norms = q.square().sum(1) * x.square().sum(1)
    return 1 - (q * x).sum(1) * torch.where(norms > 0, norms, torch.inf).rsqrt()


def _less_mean(rows: Tensor) -> Tensor:
    constant = rows.amin(1, keepdim=True) == rows.amax(1, keepdim=True)
    return (rows - rows.mean(1, keepdim=True)).masked_fill(constant, 0.0)


def _chi2(q: Tensor, x: Tensor) -> Tensor:
    total = q + x
    return ((q - x).square() / torch.where(total > 0, total, torch.inf)).sum(1)


def _canberra(q: Tensor, x: Tensor) -> Tensor:
    total = q.abs() + x.abs()
    return ((q - x).abs() / torch.where(total > 0, total, torch.inf)).sum(1)


def _power(p: float) -> Callable[[Tensor, Tensor], Tensor]:
    def value(q: Tensor, x: Tensor) -> Tensor:
        t = (q - x).abs()
        return (torch.where(t > 0, t, 1.0).pow(p) * (t > 0)).sum(1)

    return value


VALUES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "euclidean": _euclidean,
    "sqeuclidean": lambda q, x: (q - x).square().sum(1),
    "inner_product": lambda q, x: (q * x).sum(1),
    "cosine": _cosine,
    "correlation": lambda q, x: _cosine(_less_mean(q), _less_mean(x)),
    "l1": lambda q, x: (q - x).abs().sum(1),
    "linf": lambda q, x: (q - x).abs().amax(1),
    "chi2": _chi2,
    "canberra": _canberra,
    "power:0.5": _power(0.5),
    "power:1.5": _power(1.5),
    "power:3": _power(3.0),
    "power:4": _power(4.0),
}


def with_gradients(found: Found, queries: Tensor, points: Tensor, metric: str) -> Found:
    """Return a search result whose distances carry gradients to queries and points.

    Parameters
    ----------
    found : Neighbors or RadiusNeighbors of tensors
    queries, points : floating tensors of shape (m, d) and (n, d)
    metric : str
        A key of :data:`VALUES`.
    """
    numbers = torch.arange(len(queries), device=found.indices.device)
    if isinstance(found, Neighbors):
        rows = numbers.repeat_interleave(found.indices.shape[1])
    else:
        rows = numbers.repeat_interleave(found.indptr.diff(), output_size=len(found.indices))
    pairs = rows, found.indices.reshape(-1)
    return found._replace(distances=_Found.apply(found.distances, *pairs, queries, points, metric))


class _Found(torch.autograd.Function):  # type: ignore[misc]  # mypy takes all of torch for Any
    @staticmethod
    def forward(
        ctx: Any, distances: Tensor, rows: Tensor, columns: Tensor, queries: Tensor, points: Tensor, metric: str
    ) -> Tensor:
        ctx.save_for_backward(rows, columns, queries, points)
        ctx.metric = metric
        return distances.clone()

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, queries, points = ctx.saved_tensors
        sides = queries, points
        wanted = ctx.needs_input_grad[3:5]
        sums = [
            torch.zeros(side.shape, dtype=torch.float64, device=side.device) if needed else None
            for side, needed in zip(sides, wanted, strict=True)
        ]
        step = max(1, tuning.GRADIENT_ELEMENTS // max(1, queries.shape[1]))
        for begin in range(0, len(rows), step):
            block = slice(begin, begin + step)
            there = columns[block] >= 0
            ids = rows[block][there].long(), columns[block][there].long()
            pairs = [
                side[at.to(side.device)].to(gradient.device, torch.float64).requires_grad_()
                for side, at in zip(sides, ids, strict=True)
            ]
            with torch.enable_grad():
                value = VALUES[ctx.metric](*pairs)
            parts = torch.autograd.grad(value, pairs, gradient.reshape(-1)[block][there].to(torch.float64))
            for total, at, part in zip(sums, ids, parts, strict=True):
                if total is not None:
                    total.index_add_(0, at.to(total.device), part.to(total.device))
        ends = [total if total is None else total.to(side.dtype) for total, side in zip(sums, sides, strict=True)]
        return None, None, None, ends[0], ends[1], None
