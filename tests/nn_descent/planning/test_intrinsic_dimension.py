"""The intrinsic dimension of points, from their neighbours, and the expected success of NN-Descent."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tonari.metrics.reference import brute
from tonari.nn_descent.planning.intrinsic_dimension import hardness, intrinsic_dimension


def near(d: int, metric: str = "euclidean", width: int = 30) -> np.ndarray:
    """Compute distances among points of d dimensions in wider rows."""
    turned = np.linalg.qr(checks.gaussian(width, width, 3))[0][:d]
    points = (checks.gaussian(3000, d) @ turned + (3 if metric == "cosine" else 0)).astype(np.float32)
    return brute(points[:200], points, 21, metric).distances[:, 1:]


@pytest.mark.parametrize("d", [1, 3, 8])
def test_the_dimension_is_found(d: int) -> None:
    assert intrinsic_dimension(near(d)) == pytest.approx(d, rel=0.15)
    assert intrinsic_dimension(1e-3 * near(d)) == pytest.approx(intrinsic_dimension(near(d)))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_squares_are_taken_back(metric: str) -> None:
    assert hardness(near(25, metric), metric) == pytest.approx(hardness(near(25), "euclidean"), rel=0.4)
    assert hardness(near(25), "euclidean") > 4


def test_easy_points_are_as_usual() -> None:
    assert hardness(near(4), "euclidean") == 1.0
    assert hardness(near(25), "inner_product") == 1.0  # no distances


@pytest.mark.parametrize("distances", [np.zeros((5, 20)), np.ones((5, 20)), np.ones((3, 1))])
def test_what_tells_nothing_is_easy(distances: np.ndarray) -> None:
    assert intrinsic_dimension(distances) == 0.0
    assert hardness(distances, "euclidean") == 1.0


def test_copies_do_not_count() -> None:
    distances = near(5)
    with_copies = np.hstack([np.zeros((200, 3)), distances])
    assert intrinsic_dimension(with_copies) == intrinsic_dimension(distances)
