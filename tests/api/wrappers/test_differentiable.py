"""`differentiable=True` returns the same bits, with gradients that agree with finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.errors import Unsupported

if HAS_TORCH:
    import torch

    from tonari.metrics import gradients

pytestmark = needs_torch


def _rows(n: int, d: int = 5, *, seed: int, device: str = "cpu") -> Any:
    rows = np.random.default_rng(seed).random((n, d)) + 0.1
    return torch.from_numpy(rows).to(device).requires_grad_()


def test_what_is_missing_has_no_gradient() -> None:
    queries, points = _rows(3, seed=0), _rows(4, seed=1)
    found = tonari.search(queries, points, 4, where=[True, False, False, True], differentiable=True)
    assert found.indices[:, 2:].tolist() == [[-1, -1]] * 3
    found.distances[:, :2].sum().backward()
    assert queries.grad.isfinite().all()
    assert (points.grad[[0, 3]] != 0).any(1).all()
    assert not points.grad[[1, 2]].any()


@pytest.mark.parametrize(
    ("queries", "points", "message"),
    [
        (np.ones((2, 3)), "tensor", "queries: got ndarray"),
        ("tensor", np.ones((2, 3)), "points: got ndarray"),
        ("bytes", "tensor", "queries: got uint8 of torch"),
    ],
)
def test_other_than_floating_tensors_are_refused(queries: Any, points: Any, message: str) -> None:
    made = {"tensor": torch.ones(2, 3), "bytes": torch.ones(2, 3, dtype=torch.uint8)}
    sides = (made[side] if isinstance(side, str) else side for side in (queries, points))
    with pytest.raises(TypeError, match=message):
        tonari.search(*sides, 1, differentiable=True)


def test_a_metric_without_derivative_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(gradients.VALUES, "chi2")
    with pytest.raises(Unsupported, match="no derivative of metric 'chi2', expected one of euclidean"):
        tonari.knn_graph(torch.ones(3, 2), 1, metric="chi2", differentiable=True)
    with pytest.raises(TypeError, match="differentiable='yes': expected True or False"):
        tonari.search(torch.ones(3, 2), torch.ones(3, 2), 1, differentiable="yes")  # type: ignore[arg-type]
