"""The form of rows from which products are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.nn_descent.cuda import backend as steps
    from tonari.nn_descent.cuda.form import form_of
pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"


def plain_nearest(queries: Any, points: Any, k: int, metric: str, memory: int) -> Neighbors:
    assert memory > 0
    found = brute(queries.numpy(), points.numpy(), k, metric)
    return Neighbors(torch.from_numpy(found.distances), torch.from_numpy(found.indices))


@pytest.fixture(autouse=True)
def _plain_stand_in_for_the_exact_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has tests of its own, and takes the interpreter minutes."""
    if not HAS_CUDA:
        monkeypatch.setattr(steps, "nearest", plain_nearest)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_form_is_centred_and_scaled(dtype: type) -> None:
    points = np.round(20 * checks.gaussian(50, 7)).astype(dtype)
    form, moved = (form_of(torch.from_numpy(x.astype(dtype)).to(DEVICE), "l1") for x in (points, points + 4096))
    assert torch.equal(form.rows, moved.rows)
    assert float(form.rows.abs().amax()) == 256
    expected = points.astype(float) - points.mean(0, dtype=float)
    rows = form.rows.cpu().numpy().astype(float)
    np.testing.assert_allclose(rows[:, :7], 256 * expected / np.abs(expected).max(), rtol=2e-3, atol=1e-4)
    assert not rows[:, 7:].any()
    np.testing.assert_allclose(form.member_terms.cpu().numpy(), np.square(rows).sum(1), rtol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "correlation"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 33), (70, 31), (130, 100)])
def test_the_form_of_rows(n: int, d: int, dtype: str, metric: str) -> None:
    points = np.round(20 * checks.gaussian(n, d + 1)).clip(0, 100).astype(dtype)
    points[0] = 0
    rows = torch.from_numpy(points).to(DEVICE)[:, 1:]  # rows that are not contiguous
    form = form_of(rows, metric)
    expected = points[:, 1:].astype(float)
    if metric in ("cosine", "correlation"):
        if metric == "correlation":
            expected -= expected.mean(1, keepdims=True)
        norms = np.linalg.norm(expected, axis=1, keepdims=True)
        expected /= np.where(norms > 0, norms, 1)
    else:
        expected -= expected.mean(0) * (metric == "euclidean")
        expected *= 256 / max(np.abs(expected).max(), 1e-30)
    found = form.rows.cpu().numpy()
    assert found.dtype == np.float16
    assert found.shape == (n, -(-d // 32) * 32)
    np.testing.assert_allclose(found[:, :d], expected, rtol=1e-3, atol=2e-7)
    assert not found[:, d:].any()
    squares = np.square(found.astype(float)).sum(1)
    if metric == "inner_product":
        norms = np.sqrt(squares)
        np.testing.assert_allclose(form.query_terms.cpu().numpy(), 2 * norms * norms.max(), rtol=1e-6)
        assert not form.member_terms.any()
    else:
        for terms in (form.query_terms, form.member_terms):
            np.testing.assert_allclose(terms.cpu().numpy(), squares, rtol=1e-6)
