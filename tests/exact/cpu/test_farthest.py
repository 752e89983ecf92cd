"""The k farthest points, compared with a sort of all distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tonari.core.trail import recording
from tonari.exact import tuning
from tonari.exact.cpu.farthest import farthest
from tonari.metrics.reference import pairwise, returned

N, M = 400, 23
DATA: dict[str, Any] = {name: make(N, 5, 0) for name, make in checks.HOSTILE.items()}
DATA |= {
    "equal": np.ones((N, 3), np.float32),
    "circle": np.stack([np.cos(np.arange(N)), np.sin(np.arange(N))], axis=1),  # all at nearly the same distance
    "offset64": checks.offset_float64(N, 3),
    "bytes": np.random.default_rng(0).integers(0, 256, (N, 7)).astype(np.uint8),
}


def by_hand(queries: Any, points: Any, k: int, metric: str) -> tuple[Any, Any]:
    wide = np.float64 if points.dtype == np.float64 else np.float32
    values = returned(pairwise(queries, points, metric), wide)
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, order, axis=1), order


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("k", [1, 7, N])
@pytest.mark.parametrize("data", DATA)
def test_the_farthest_points_are_the_last_of_all(
    data: str, k: int, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "FARTHEST_BLOCK", 3 * N)
    points = DATA[data]
    queries = np.ascontiguousarray(points[:: N // M])
    found = farthest(queries, points, k, metric)
    distances, indices = by_hand(queries, points, k, metric)
    np.testing.assert_array_equal(found.indices, indices)
    assert found.distances.tobytes() == distances.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_candidates_prove_most_answers(threads: int) -> None:
    points = checks.gaussian(3000, 16)
    with recording("farthest", 200) as record:
        found = farthest(points[:200], points, 5, "euclidean", threads=threads)
    np.testing.assert_array_equal(found.indices, by_hand(points[:200], points, 5, "euclidean")[1])
    assert record.proved == 200
    assert next(attempt for attempt in record.attempts if "candidates" in attempt.name).proved >= 195


def test_ties_beyond_the_candidates_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FARTHEST_MORE", 1)
    points = np.tile(np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32), (200, 1))
    found = farthest(points[:4], points, 3, "euclidean")
    assert found.indices.tolist() == [[1, 3, 5], [0, 2, 4], [1, 3, 5], [0, 2, 4]]


@pytest.mark.parametrize("scale", [1e80, 1e-160])
def test_rows_whose_inner_products_would_overflow_or_underflow(scale: float) -> None:
    points = checks.gaussian(300, 4).astype(np.float64) * scale
    found = farthest(points[:9], points, 3, "euclidean")
    np.testing.assert_array_equal(found.indices, by_hand(points[:9], points, 3, "euclidean")[1])
