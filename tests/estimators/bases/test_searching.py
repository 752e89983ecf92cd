"""Shared parts of the estimators: rows that are kept, pickled and forgotten, and refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn.exceptions import NotFittedError

from tests.helpers import checks
from tonari.estimators import KNeighborsTransformer, NearestNeighbors


def test_a_fitted_estimator_can_be_pickled() -> None:
    points = checks.gaussian(60, 5)
    nearest = NearestNeighbors().fit(points)
    for a, b in zip(nearest.kneighbors(points), pickle.loads(pickle.dumps(nearest)).kneighbors(points), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_new_fit_forgets_the_old_rows() -> None:
    nearest = NearestNeighbors(n_neighbors=1).fit(checks.gaussian(60, 5))
    other = checks.gaussian(10, 3, 1)
    assert nearest.fit(other).kneighbors(other)[1].ravel().tolist() == list(range(10))


def test_refuses_what_it_cannot_answer() -> None:
    points = checks.gaussian(5, 3)
    with pytest.raises(NotFittedError):
        NearestNeighbors().kneighbors(points)
    nearest = NearestNeighbors().fit(points)
    with pytest.raises(ValueError, match="mode='both': expected 'connectivity' or 'distance'"):
        nearest.kneighbors_graph(points, mode="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mode='both'"):
        KNeighborsTransformer(mode="both").fit(points)
