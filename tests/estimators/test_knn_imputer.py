"""KNNImputer beside scikit-learn's, and the other estimators with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import impute

from tests.helpers.missing import with_gaps
from tonari.estimators import (
    DBSCAN,
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    KNNImputer,
    LocalOutlierFactor,
    NearestNeighbors,
    RadiusNeighborsClassifier,
)

RNG = np.random.default_rng(0)
ROWS = {
    (n, d, share): with_gaps(RNG.standard_normal((n, d)), share)
    for n, d, share in ((150, 5, 0.3), (50, 3, 0.85), (90, 12, 0.1))
}


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize(
    "given",
    [{}, {"weights": "distance"}, {"weights": lambda d: 1 / (1 + d)}],
    ids=["uniform", "distance", "a function"],
)
@pytest.mark.parametrize("k", [1, 5, 40])
def test_the_values_are_scikit_learns(shape: Any, given: dict[str, Any], k: int) -> None:
    rows = ROWS[shape]
    ours, theirs = KNNImputer(n_neighbors=k, **given).fit(rows), impute.KNNImputer(n_neighbors=k, **given).fit(rows)
    for some in (rows, with_gaps(RNG.standard_normal((20, shape[1])), shape[2])):
        np.testing.assert_allclose(ours.transform(some), theirs.transform(some), rtol=1e-6)


def test_other_missing_values_functions_and_empty_columns() -> None:
    rows = np.where(RNG.random((60, 4)) < 0.3, -1.0, RNG.integers(0, 9, (60, 4)))
    given: dict[str, Any] = {"missing_values": -1.0, "n_neighbors": 60, "add_indicator": True}
    expected = impute.KNNImputer(**given).fit_transform(rows)
    np.testing.assert_allclose(KNNImputer(**given).fit_transform(rows), expected)

    def apart(a: Any, b: Any, *, missing_values: Any) -> Any:
        return np.nan_to_num(np.abs(a - b)).sum()

    gaps = np.where(rows == -1, np.nan, rows)
    ours, theirs = (kind(metric=apart).fit_transform(gaps) for kind in (KNNImputer, impute.KNNImputer))
    np.testing.assert_array_equal(ours, theirs)
    gaps[:, 2] = np.nan
    for keep in (False, True):
        ours, theirs = (
            kind(keep_empty_features=keep, n_neighbors=60).fit_transform(gaps)
            for kind in (KNNImputer, impute.KNNImputer)
        )
        np.testing.assert_allclose(ours, theirs)
    assert KNNImputer(n_jobs=1, memory="1GB").fit_transform(gaps).shape == (60, 3)


def test_the_other_estimators_take_missing_values() -> None:
    rows, labels = ROWS[150, 5, 0.3][:100], np.arange(100) % 2
    complete = rows[(~np.isnan(rows)).sum(axis=1) > 3]
    assert len(complete) > 30
    given: dict[str, Any] = {"metric": "nan_euclidean"}
    found = NearestNeighbors(n_neighbors=3, **given).fit(complete).kneighbors(complete)
    assert found[1][:, 0].tolist() == list(range(len(complete)))
    y = labels[: len(complete)]
    assert (KNeighborsClassifier(1, **given).fit(complete, y).predict(complete) == y).all()
    assert (KNeighborsRegressor(1, **given).fit(complete, y).predict(complete) == y).all()
    assert RadiusNeighborsClassifier(0.0, **given).fit(complete, y).predict(complete).tolist() == y.tolist()
    assert KNeighborsTransformer(n_neighbors=3, **given).fit_transform(complete).nnz == 4 * len(complete)
    assert set(LocalOutlierFactor(5, **given).fit_predict(complete)) <= {1, -1}
    assert DBSCAN(eps=100.0, **given).fit(complete).labels_.max() == 0
    few = np.array([[np.nan, 1.0], [1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(ValueError, match="X: row 0 shares a column with 0 fitted rows, expected at least 1"):
        NearestNeighbors(n_neighbors=1, **given).fit(few).kneighbors()
    with pytest.raises(ValueError, match="NaN"):
        NearestNeighbors().fit(few)
