"""Outlier factors, compared with their definition for the lists of the reference, and with scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.helpers import checks
from tests.helpers.radius_estimators import HOSTILE, NAMES
from tonari.estimators import LocalOutlierFactor, tuning
from tonari.metrics.reference import brute

X = np.concatenate([checks.gaussian(150, 3, dtype=np.float64), 9 + checks.gaussian(5, 3, 1, np.float64)])
NEW = checks.gaussian(20, 3, 2, np.float64) * 2


def _factors(queries: Any, points: Any, k: int, metric: str, own: Any) -> Any:
    """Compute the negative factors by definition, in float64."""
    fitted = brute(points, points, k, metric, self_ids=np.arange(len(points)))
    found = brute(queries, points, k, metric, self_ids=own)
    last = fitted.distances[:, -1].astype(np.float64)

    def densities(lists: Any) -> Any:
        return 1 / (np.maximum(lists.distances.astype(np.float64), last[lists.indices]).mean(axis=1) + 1e-10)

    return -(densities(fitted)[found.indices] / densities(found)[:, None]).mean(axis=1)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev", "cosine", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 4, 62])
@pytest.mark.filterwarnings("ignore:Duplicate values are leading to incorrect results")
def test_factors_are_those_of_the_definition(kind: str, metric: str, dtype: Any, k: int) -> None:
    points, queries = HOSTILE[kind](63, 3).astype(dtype), HOSTILE[kind](7, 3, seed=1).astype(dtype)
    name = NAMES.get(metric, metric)
    made = LocalOutlierFactor(n_neighbors=k, metric=metric, novelty=True).fit(points)
    for found, expected in (
        (made.negative_outlier_factor_, _factors(points, points, k, name, np.arange(63))),
        (made.score_samples(queries), _factors(queries, points, k, name, None)),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("n_neighbors", [1, 20, 154])
@pytest.mark.parametrize("contamination", ["auto", 0.03, 0.5])
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev", "cosine"])
def test_outliers_are_scikit_learns(n_neighbors: int, contamination: Any, metric: str) -> None:
    given = {"n_neighbors": n_neighbors, "contamination": contamination, "metric": metric}
    # scikit-learn's brute force in float64 rounds more than its trees, which do not support cosine
    algorithm = "brute" if metric == "cosine" else "kd_tree"
    ours, theirs = LocalOutlierFactor(**given), neighbors.LocalOutlierFactor(**given, algorithm=algorithm)
    np.testing.assert_array_equal(ours.fit_predict(X), theirs.fit_predict(X))
    np.testing.assert_allclose(ours.negative_outlier_factor_, theirs.negative_outlier_factor_, rtol=1e-9)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-9)
    assert ours.n_neighbors_ == theirs.n_neighbors_
    ours, theirs = (each.set_params(novelty=True).fit(X) for each in (ours, theirs))
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    np.testing.assert_allclose(ours.score_samples(NEW), theirs.score_samples(NEW), rtol=1e-9)
    np.testing.assert_allclose(ours.decision_function(NEW), theirs.decision_function(NEW), rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore:n_neighbors .* is greater than the total number of samples")
@parametrize_with_checks([LocalOutlierFactor(novelty=True)])
def test_is_an_estimator_for_new_rows_too(estimator: Any, check: Any) -> None:
    check(estimator)


def test_blocks_do_not_change_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LocalOutlierFactor(n_neighbors=7).fit(X).negative_outlier_factor_
    monkeypatch.setattr(tuning, "ENTRIES", 30)
    np.testing.assert_array_equal(LocalOutlierFactor(n_neighbors=7).fit(X).negative_outlier_factor_, whole)


def test_fitted_rows_are_scored_without_themselves() -> None:
    made = LocalOutlierFactor(novelty=True).fit(X)
    np.testing.assert_array_equal(made.score_samples(None), made.negative_outlier_factor_)
    np.testing.assert_array_equal(made.predict(), LocalOutlierFactor().fit_predict(X))


def test_methods_depend_on_novelty() -> None:
    old, new = LocalOutlierFactor().fit(X), LocalOutlierFactor(novelty=True).fit(X)
    assert hasattr(old, "fit_predict")
    assert not hasattr(new, "fit_predict")
    for name in ("predict", "decision_function", "score_samples"):
        assert not hasattr(old, name)
        assert hasattr(new, name)
        with pytest.raises(NotFittedError):
            getattr(LocalOutlierFactor(novelty=True), name)(X)


def test_warnings_are_scikit_learns() -> None:
    with pytest.warns(UserWarning, match=r"n_neighbors \(20\) is greater than the total number of samples \(6\)"):
        assert LocalOutlierFactor().fit(X[:6]).n_neighbors_ == 5
    copies = np.concatenate([np.zeros((30, 1)), np.linspace(0, 1, 30)[:, None]])
    with pytest.warns(UserWarning, match="Duplicate values are leading to incorrect results"):
        LocalOutlierFactor(n_neighbors=5).fit(copies)


@pytest.mark.parametrize("contamination", [0, 0.6, "much", None])
def test_contaminations_that_make_no_sense_are_refused(contamination: Any) -> None:
    with pytest.raises(ValueError, match=r"contamination=.*: expected 'auto', or a number above 0"):
        LocalOutlierFactor(contamination=contamination).fit(X)


def test_one_row_has_no_neighbours() -> None:
    with pytest.raises(ValueError, match="n_neighbors=1: at most 0 are there"):
        LocalOutlierFactor(n_neighbors=1).fit(X[:1])
