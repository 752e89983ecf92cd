"""Means of neighbours, compared with scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors

from tests.helpers import checks
from tonari import estimators

WEIGHTS = {"uniform": "uniform", "distance": "distance", "none": None, "function": lambda d: np.exp(-d)}
X, NEW = checks.gaussian(120, 4, dtype=np.float64), checks.gaussian(30, 4, 1, np.float64)
NEW[:5] = X[:5]  # at distance 0 of a fitted row


def _y(kind: str, outputs: int) -> Any:
    rng = np.random.default_rng(2)
    values = rng.standard_normal((120, outputs)) if kind == "values" else rng.integers(3, size=(120, outputs))
    made = np.array(["ape", "bee", "cat"])[values] if kind == "names" else values
    return made[:, 0] if outputs == 1 else made


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("n_neighbors", [1, 4, 120])
def test_means_are_scikit_learns(weights: str, outputs: int, n_neighbors: int) -> None:
    y, params = _y("values", outputs), {"n_neighbors": n_neighbors, "weights": WEIGHTS[weights]}
    ours = estimators.KNeighborsRegressor(**params).fit(X, y)
    # scikit-learn's brute force rounds more
    theirs = neighbors.KNeighborsRegressor(algorithm="kd_tree", **params).fit(X, y)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), rtol=1e-9, atol=1e-12)
    assert ours.predict(NEW).shape == theirs.predict(NEW).shape


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_means_of_whole_numbers_are_not_rounded(dtype: str) -> None:
    y = (np.arange(120) % 2 * (1 if dtype == "bool" else 255)).astype(dtype)
    found = estimators.KNeighborsRegressor(n_neighbors=120).fit(X, y).predict(NEW)
    np.testing.assert_array_equal(found, np.full(len(NEW), y.mean(dtype=np.float64)))
