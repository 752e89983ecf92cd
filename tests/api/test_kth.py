"""The k-th distance of every point, without lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch
from tonari.api import tuning
from tonari.metrics import METRICS
from tonari.metrics.reference import brute

N = 60


def truth(points: Any, k: int, metric: str) -> Any:
    return brute(points, points, k, metric, self_ids=np.arange(len(points))).distances[:, -1]


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize("k", [1, 7, N - 1])
def test_the_last_column_of_the_graph(metric: str, maker: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "KTH_HELD", 23 * (k + 1))
    points = checks.in_range(checks.HOSTILE[maker](N, 5, 0), metric)
    points = np.abs(points) if METRICS[metric].nonnegative else points
    same(tonari.kth_distance(points, k, metric=metric), truth(points, k, metric))


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8"])
def test_every_dtype(dtype: str) -> None:
    points = (checks.gaussian(N, 4) * 20 + 60).astype(dtype)
    same(tonari.kth_distance(points, 3), truth(points, 3, "euclidean"))


def test_more_copies_than_neighbours() -> None:
    points = np.repeat(checks.gaussian(5, 3), 12, axis=0)
    for k in (1, 11, 12):
        found = tonari.kth_distance(points, k)
        same(found, truth(points, k, "euclidean"))
        assert (found == 0).all() == (k < 12)


@needs_torch
def test_tensors_give_a_tensor() -> None:
    import torch

    points = checks.gaussian(N, 4)
    found = tonari.kth_distance(torch.from_numpy(points), 4)
    assert isinstance(found, torch.Tensor)
    same(found.numpy(), truth(points, 4, "euclidean"))


def test_progress_counts_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "KTH_HELD", 100)
    seen: list[tuple[int, int]] = []
    tonari.kth_distance(checks.gaussian(N, 4), 4, progress=lambda *pair: seen.append(pair))
    assert seen == [(20, N), (40, N), (60, N)]


@pytest.mark.parametrize("k", [0, N])
def test_k_counts_other_points(k: int) -> None:
    with pytest.raises(ValueError, match=f"k={k}"):
        tonari.kth_distance(checks.gaussian(N, 4), k)
