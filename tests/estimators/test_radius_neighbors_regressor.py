"""Means of the rows within a radius, compared with scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors

from tests.helpers import checks
from tests.helpers.radius_estimators import EXACT
from tonari import estimators

WEIGHTS: dict[str, Any] = {
    "uniform": "uniform",
    "distance": "distance",
    "none": None,
    "function": lambda lists: np.array([*(np.exp(-each) for each in lists), None], object)[:-1],
}
X, NEW = checks.gaussian(120, 3, dtype=np.float64), checks.gaussian(30, 3, 1, np.float64)
NEW[:5] = X[:5]  # at distance 0 of a fitted row


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("radius", [0.4, 1.0, 20.0])
@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors within specified radius")
def test_means_are_scikit_learns(weights: str, outputs: int, radius: float) -> None:
    y = np.random.default_rng(2).standard_normal((120, outputs))
    y, params = y[:, 0] if outputs == 1 else y, {"radius": radius, "weights": WEIGHTS[weights]}
    ours = estimators.RadiusNeighborsRegressor(**params).fit(X, y)
    theirs = neighbors.RadiusNeighborsRegressor(algorithm="kd_tree", **params).fit(X, y)
    for x in (NEW, None):
        np.testing.assert_allclose(ours.predict(x), theirs.predict(x), rtol=1e-9, atol=1e-12)
        assert ours.predict(x).shape == theirs.predict(x).shape


@pytest.mark.parametrize("kind", EXACT)
def test_ties_at_the_radius_are_inside(kind: str) -> None:
    points, y = EXACT[kind](60, 3).astype(np.float64), np.arange(60.0) ** 2
    ours = estimators.RadiusNeighborsRegressor(radius=2.0).fit(points, y)
    theirs = neighbors.RadiusNeighborsRegressor(radius=2.0, algorithm="kd_tree").fit(points, y)
    np.testing.assert_allclose(ours.predict(points), theirs.predict(points), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64"])
def test_rows_without_neighbours_are_nan_with_a_warning(dtype: str) -> None:
    made = estimators.RadiusNeighborsRegressor(radius=1.0).fit(X, (np.arange(120) % 2 * 255).astype(dtype))
    with pytest.warns(UserWarning, match="no neighbors within specified radius; predicting NaN"):
        found = made.predict([[99.0] * 3, X[0]])
    assert np.isnan(found).tolist() == [True, False]


def test_weights_without_a_sum_are_refused() -> None:
    made = estimators.RadiusNeighborsRegressor(weights=lambda lists: [0 * each for each in lists]).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="add up to 0"):
        made.predict(X)
