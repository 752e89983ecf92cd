"""Gradients of distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tonari.metrics import METRICS, tuning

if HAS_TORCH:
    import torch


pytestmark = needs_torch
everywhere = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])


def _rows(n: int, d: int = 5, *, seed: int, device: str = "cpu") -> Any:
    rows = np.random.default_rng(seed).random((n, d)) + 0.1
    return torch.from_numpy(rows).to(device).requires_grad_()


VERBS: dict[str, Callable[..., Any]] = {
    "search": lambda q, p, metric, **given: tonari.search(q, p, 3, metric=metric, **given).distances,
    "filtered": lambda q, p, metric, **given: (
        tonari.search(q, p, 3, metric=metric, where=np.arange(len(p)) % 2 == 0, **given).distances
    ),
    "graph": lambda q, p, metric, **given: tonari.knn_graph(p, 3, metric=metric, include_self=True, **given).distances,
    "batch": lambda q, p, metric, **given: (
        tonari.knn_graph(p, 2, metric=metric, batch=np.arange(len(p)) % 3, **given).distances
    ),
    "radius": lambda q, p, metric, **given: (
        tonari.radius_search(q, p, **_within(metric), metric=metric, **given).distances
    ),
    "radius-graph": lambda q, p, metric, **given: (
        tonari.radius_graph(p, **_within(metric), metric=metric, **given).distances
    ),
}


def _within(metric: str) -> dict[str, float]:
    return (
        {"min_similarity": 0.9}
        if METRICS[metric].descending
        else {"radius": {"cosine": 0.1, "l1": 1.2, "canberra": 1.5, "power:0.5": 2.0}.get(metric, 0.5)}
    )


@everywhere
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("metric", METRICS)
def test_derivatives_are_those_that_differences_show(metric: str, verb: str, device: str) -> None:
    queries, points = _rows(2, 3, seed=0, device=device), _rows(7, 3, seed=1, device=device)
    plain = VERBS[verb](queries.detach(), points.detach(), metric)
    found = VERBS[verb](queries, points, metric, differentiable=True)
    assert len(found)
    assert torch.equal(found, plain)
    assert found.requires_grad
    assert not plain.requires_grad

    def distances(q: Any, p: Any) -> Any:
        values = VERBS[verb](q, p, metric, differentiable=True)
        return torch.where(values.isfinite(), values, 0.0)

    # Equal rows of a graph: a difference of distances from a point to itself shows the derivative 0.
    assert torch.autograd.gradcheck(distances, (queries, points), atol=1e-6)


@everywhere
@pytest.mark.parametrize("metric", [name for name, metric in METRICS.items() if not metric.nonnegative])
def test_derivatives_of_rows_of_mixed_sign(metric: str, device: str) -> None:
    made = np.random.default_rng(3)
    queries, points = (
        torch.from_numpy(made.standard_normal((n, 3))).to(device).requires_grad_() for n in (4, 9)
    )  # fmt: skip
    assert (queries[:, None] * points < 0).any()
    assert torch.autograd.gradcheck(
        lambda q, p: tonari.search(q, p, 3, metric=metric, differentiable=True).distances, (queries, points), atol=1e-6
    )


@pytest.mark.parametrize("metric", [name for name in METRICS if name != "inner_product"])
def test_where_a_distance_has_no_derivative_the_gradient_is_zero(metric: str) -> None:
    rows = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [3.0, 3.0], [3.0, 3.0]], requires_grad=True)
    same = tonari.knn_graph(rows, 1, metric=metric, batch=[0, 0, 1, 1, 2, 2], differentiable=True).distances
    same.sum().backward()
    assert torch.allclose(rows.grad, torch.zeros_like(rows), atol=1e-6)


@pytest.mark.parametrize("which", ["queries", "points"])
def test_the_gradient_of_canberra_where_signs_differ(which: str) -> None:
    """A term of different signs is 1 for all elements; a term of equal signs is |a - b| / (|a| + |b|)."""
    q, x = np.array([[1.0, -2.0, 3.0, -0.5, 2.0]]), np.array([[-2.0, -3.0, 0.5, 4.0, 2.5]])
    rows = {"queries": torch.from_numpy(q).requires_grad_(), "points": torch.from_numpy(x).requires_grad_()}
    tonari.search(*rows.values(), 1, metric="canberra", differentiable=True).distances.sum().backward()
    own, other = (q, x) if which == "queries" else (x, q)
    total = np.abs(own) + np.abs(other)
    one_sign = 2 * np.abs(other) * np.sign(own) * np.sign(np.abs(own) - np.abs(other)) / total**2
    expected = np.where(np.sign(own) == np.sign(other), one_sign, 0.0)
    np.testing.assert_allclose(rows[which].grad.numpy(), expected, rtol=1e-14, atol=1e-16)


def test_blocks_of_pairs_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums() -> list[Any]:
        queries, points = _rows(7, seed=0), _rows(20, seed=1)
        found = tonari.search(queries, points, 5, differentiable=True)
        (found.distances * torch.arange(35.0).reshape(7, 5)).sum().backward()
        return [queries.grad, points.grad]

    whole = sums()
    monkeypatch.setattr(tuning, "GRADIENT_ELEMENTS", 5 * 4)  # four pairs
    for one, other in zip(whole, sums(), strict=True):
        assert one.any()
        assert torch.allclose(one, other, rtol=1e-12)


@everywhere
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_have_the_type_of_the_rows(dtype: str, device: str) -> None:
    sides = [_rows(n, seed=n).detach().to(device, getattr(torch, dtype)).requires_grad_() for n in (6, 11)]
    tonari.search(*sides, 3, differentiable=True).distances.sum().backward()
    exact = [side.detach().double().requires_grad_() for side in sides]
    tonari.search(*exact, 3, differentiable=True).distances.sum().backward()
    for side, other in zip(sides, exact, strict=True):
        assert side.grad.dtype == side.dtype
        assert torch.equal(side.grad, other.grad.to(side.dtype))


def test_one_side_alone_may_be_constant() -> None:
    queries, points = _rows(3, seed=0), _rows(8, seed=1)
    tonari.search(queries.detach(), points, 2, differentiable=True).distances.sum().backward()
    assert points.grad.any()
    assert queries.grad is None
    assert not tonari.search(queries.detach(), points.detach(), 2, differentiable=True).distances.requires_grad
