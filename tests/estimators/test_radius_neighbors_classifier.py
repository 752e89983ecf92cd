"""Classes and labels of outliers equal scikit-learn's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors

from tests.helpers import checks
from tests.helpers.radius_estimators import EXACT
from tonari import estimators
from tonari.estimators import tuning

WEIGHTS: dict[str, Any] = {
    "uniform": "uniform",
    "distance": "distance",
    "none": None,
    "function": lambda lists: np.array([*(np.exp(-each) for each in lists), None], object)[:-1],
}
X, NEW = checks.gaussian(120, 3, dtype=np.float64), checks.gaussian(30, 3, 1, np.float64)
NEW[:5] = X[:5]  # at distance 0 of a fitted row


def _y(kind: str, outputs: int, classes: int = 3) -> Any:
    values = np.random.default_rng(2).integers(classes, size=(120, outputs))
    made = np.array(["ape", "bee", "cat"])[values] if kind == "names" else values
    return made[:, 0] if outputs == 1 else made


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", ["numbers", "names"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("radius", [0.4, 1.0, 20.0])
@pytest.mark.parametrize("outlier", ["label", "most_frequent"])
def test_classes_are_scikit_learns(weights: str, kind: str, outputs: int, radius: float, outlier: str) -> None:
    y, label = _y(kind, outputs), {"numbers": 1, "names": "bee"}[kind]
    params = {"radius": radius, "weights": WEIGHTS[weights], "outlier_label": label if outlier == "label" else outlier}
    ours = estimators.RadiusNeighborsClassifier(**params).fit(X, y)
    theirs = neighbors.RadiusNeighborsClassifier(**params, algorithm="kd_tree").fit(X, y)
    assert ours.outlier_label_ == theirs.outlier_label_
    for x in (NEW, None):
        np.testing.assert_array_equal(ours.predict(x), theirs.predict(x))
        np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), rtol=1e-9, atol=1e-12)
    if outputs == 1:
        assert ours.score(NEW, y[:30]) == theirs.score(NEW, y[:30])


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev"])
def test_ties_at_the_radius_are_inside(kind: str, metric: str) -> None:
    rows = EXACT[kind](90, 3).astype(np.float64)
    points, queries, y = rows[:60], rows[60:], np.random.default_rng(0).integers(4, size=60)
    params: dict[str, Any] = {"radius": 2.0, "metric": metric, "outlier_label": 0}
    ours = estimators.RadiusNeighborsClassifier(**params).fit(points, y)
    theirs = neighbors.RadiusNeighborsClassifier(**params, algorithm="kd_tree").fit(points, y)
    np.testing.assert_array_equal(ours.predict(queries), theirs.predict(queries))
    np.testing.assert_array_equal(ours.predict_proba(queries), theirs.predict_proba(queries))


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("entries", [60, 1 << 21])
def test_more_classes_than_neighbours(weights: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "RADIUS_ENTRIES", entries)
    rng = np.random.default_rng(3)
    rows, y = rng.standard_normal((900, 3)), rng.permutation(np.repeat(np.arange(300), 3))
    params: dict[str, Any] = {"radius": 0.4, "weights": weights, "outlier_label": 7}
    ours = estimators.RadiusNeighborsClassifier(**params).fit(rows, y)
    theirs = neighbors.RadiusNeighborsClassifier(**params, algorithm="kd_tree").fit(rows, y)
    asked = np.concatenate([rows[:50], rng.standard_normal((450, 3))])
    np.testing.assert_array_equal(ours.predict(asked), theirs.predict(asked))
    np.testing.assert_allclose(ours.predict_proba(asked), theirs.predict_proba(asked), rtol=1e-9, atol=1e-12)


def test_rows_without_neighbours_need_a_label() -> None:
    y, far = _y("numbers", 1), np.full((7, 3), 99.0)
    made = estimators.RadiusNeighborsClassifier(radius=1.0).fit(X, y)
    for predict in (made.predict, made.predict_proba):
        with pytest.raises(ValueError, match="rows 5, 6, 7, 8, 9 and 2 more have no neighbours of positive weight"):
            predict(np.concatenate([X[:5], far]))
    made = estimators.RadiusNeighborsClassifier(radius=1.0, outlier_label=-1).fit(X, y)
    assert made.predict(far).tolist() == [-1] * 7
    with pytest.warns(UserWarning, match="Outlier label -1 is not in training classes"):
        assert not made.predict_proba(far).any()


def test_rows_whose_weights_are_all_zero_are_outliers_in_predictions() -> None:
    y = _y("numbers", 1)
    none: dict[str, Any] = {"radius": 1.0, "weights": lambda lists: [0 * each for each in lists]}
    made = estimators.RadiusNeighborsClassifier(**none, outlier_label=2).fit(X, y)
    assert (made.predict(X) == 2).all()
    assert not made.predict_proba(X).any()
    with pytest.raises(ValueError, match="rows 0, 1, 2, 3, 4 and 115 more have no neighbours of positive weight"):
        estimators.RadiusNeighborsClassifier(**none).fit(X, y).predict(X)


@pytest.mark.parametrize(
    ("label", "outputs", "error"),
    [([1, 2], 1, ValueError), ([[5]], 1, TypeError), ("a", 1, TypeError), (0.5, 1, TypeError), ([1], 2, ValueError)],
)
def test_labels_that_fit_no_class_are_refused(label: Any, outputs: int, error: type[Exception]) -> None:
    for library in (estimators, neighbors):
        with pytest.raises(error):
            library.RadiusNeighborsClassifier(outlier_label=label).fit(X, _y("numbers", outputs))


def test_a_label_for_each_output() -> None:
    params: dict[str, Any] = {"radius": 0.1, "outlier_label": [2, 0]}
    both = [library.RadiusNeighborsClassifier(**params).fit(X, _y("numbers", 2)) for library in (estimators, neighbors)]
    np.testing.assert_array_equal(*(each.predict(NEW) for each in both))
    np.testing.assert_array_equal(*(each.predict_proba(NEW) for each in both))


def test_names_of_columns_are_checked_once() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    made = estimators.RadiusNeighborsClassifier(radius=9.0).fit(frame, _y("numbers", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(made.predict(frame), made.predict_proba(frame).argmax(axis=1))
