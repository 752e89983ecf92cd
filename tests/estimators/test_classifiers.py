"""The classes equal scikit-learn's if no two neighbours are at the same distance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV

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
@pytest.mark.parametrize("kind", ["numbers", "names"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("n_neighbors", [1, 4, 120])
def test_classes_are_scikit_learns(weights: str, kind: str, outputs: int, n_neighbors: int) -> None:
    y, params = _y(kind, outputs), {"n_neighbors": n_neighbors, "weights": WEIGHTS[weights]}
    ours = estimators.KNeighborsClassifier(**params).fit(X, y)
    theirs = neighbors.KNeighborsClassifier(**params, algorithm="kd_tree").fit(X, y)
    np.testing.assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    np.testing.assert_array_equal(np.asarray(ours.classes_), np.asarray(theirs.classes_))
    np.testing.assert_allclose(ours.predict_proba(NEW), theirs.predict_proba(NEW), rtol=1e-9, atol=1e-12)
    if outputs == 1:
        assert ours.score(NEW, y[:30]) == theirs.score(NEW, y[:30])
    if n_neighbors < 120:
        np.testing.assert_array_equal(ours.predict(None), theirs.predict(None))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("memory", [None, 8_000_000])
@pytest.mark.parametrize("outputs", [1, 2])
def test_more_classes_than_neighbours(weights: str, memory: int | None, outputs: int) -> None:
    """There are few rows of each class, and class numbers are not in the order of rows: most votes are tied."""
    rng = np.random.default_rng(3)
    rows, y = rng.standard_normal((900, 3)), rng.permutation(np.repeat(np.arange(300), 3))
    y = y if outputs == 1 else np.stack([y, rng.integers(2, size=900)], axis=1)
    params = {"n_neighbors": 7, "weights": WEIGHTS[weights]}
    ours = estimators.KNeighborsClassifier(**params, memory=memory).fit(rows, y)
    theirs = neighbors.KNeighborsClassifier(**params, algorithm="kd_tree").fit(rows, y)
    asked = rng.standard_normal((500, 3))
    asked[:50] = rows[:50]
    np.testing.assert_array_equal(ours.predict(asked), theirs.predict(asked))
    found, expected = ours.predict_proba(asked), theirs.predict_proba(asked)
    for mine, their in zip(*((found, expected) if outputs == 2 else ([found], [expected])), strict=True):
        np.testing.assert_allclose(mine, their, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["int8", "bool", "U3", "object", "list", "column", "other"])
def test_scores_are_scikit_learns(kind: str) -> None:
    y = _y("numbers", 1)
    asked: Any = y[:30]
    if kind == "bool":
        y, asked = y > 0, asked > 0
    elif kind == "column":
        asked = asked[:, None]
    elif kind == "other":
        asked = asked > 0
    elif kind == "list":
        asked = asked.tolist()
    else:
        y, asked = y.astype(kind), asked.astype(kind)
    if kind == "object":
        y, asked = y.astype(str).astype(object), asked.astype(str).astype(object)
    both = [each.KNeighborsClassifier(n_neighbors=4).fit(X, y) for each in (estimators, neighbors)]
    ours, theirs = (each.score(NEW, asked) for each in both)
    assert ours == theirs
    assert type(ours) is float
    weights = np.arange(1.0, 31.0)
    ours, theirs = (each.score(NEW, asked, sample_weight=weights) for each in both)
    assert ours == theirs


@pytest.mark.parametrize("fault", ["values", "many classes", "mixed", "length"])
def test_what_scikit_learn_finds_wrong_with_classes_is_found(fault: str) -> None:
    y: Any = {
        "values": _y("values", 1),
        "many classes": np.arange(120),
        "mixed": np.array([1, "one", None] * 40, object),
        "length": np.zeros(119, int),
    }[fault]
    found = []
    for each in (neighbors, estimators):
        with pytest.raises((ValueError, TypeError, UserWarning)) as raised:
            each.KNeighborsClassifier().fit(X, y)
        found.append(raised)
    assert found[0].type is found[1].type
    if fault != "length":
        assert str(found[0].value) == str(found[1].value)


def test_a_score_needs_as_many_classes_as_rows() -> None:
    made = estimators.KNeighborsClassifier().fit(X, _y("numbers", 1))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        made.score(NEW, _y("numbers", 1))


def test_equally_many_votes_go_to_the_first_class_and_ties_to_the_smaller_row() -> None:
    points = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    classifier = estimators.KNeighborsClassifier(2).fit(points, ["b", "a", "c", "c"])
    assert classifier.predict([[0.0]]).tolist() == ["a"]  # of rows 0 and 1, and of b and a
    assert estimators.KNeighborsRegressor(3).fit(points, [3, 6, 9, 100]).predict([[0.0]]).tolist() == [6.0]


def test_a_column_of_classes_is_one_output() -> None:
    y = _y("numbers", 1)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        classifier = estimators.KNeighborsClassifier().fit(X, y[:, None])
    np.testing.assert_array_equal(classifier.predict(NEW), estimators.KNeighborsClassifier().fit(X, y).predict(NEW))


def test_a_grid_search_finds_the_same() -> None:
    y = _y("numbers", 1)
    grid = {"n_neighbors": [1, 4, 7], "weights": ["uniform", "distance"], "p": [1, 2]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            GridSearchCV(clone(each), grid, cv=3).fit(X, y).cv_results_["mean_test_score"]
            for each in (estimators.KNeighborsClassifier(), neighbors.KNeighborsClassifier(algorithm="kd_tree"))
        ]
    np.testing.assert_array_equal(*found)
