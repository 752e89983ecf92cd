"""scikit-learn's parameters: understood, or refused with the nearest fix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

import sklearn.cluster
import sklearn.neighbors

from tonari import estimators
from tonari.estimators.settings import metric_of, threads_of
from tonari.metrics import METRICS

POINTS = np.eye(4)
ALL = [getattr(estimators, name) for name in estimators.__all__]


@pytest.mark.parametrize("name", estimators.__all__)
def test_parameters_are_scikit_learns_with_their_defaults(name: str) -> None:
    ours = getattr(estimators, name)().get_params()
    theirs = getattr(sklearn.cluster if name == "DBSCAN" else sklearn.neighbors, name)().get_params()
    assert theirs.items() <= ours.items()
    assert set(ours) - set(theirs) == {"device", "memory"}


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": "precomputed"}, "use scikit-learn's class of the same name"),
        ({"metric": "nan_euclidean"}, "impute them first"),
        ({"metric": "seuclidean"}, "StandardScaler"),
        ({"metric": "mahalanobis"}, "inverse covariance"),
        ({"metric": "inner_product"}, "is a similarity, .* use metric='cosine', or tonari.search"),
        ({"metric": "hamming"}, "metric='hamming': compares rows of bits"),
        ({"metric": "triton:mine"}, "expected one of"),
        ({"metric": np.linalg.norm}, "expected a name; for a callable"),
        ({"metric": "minkowski", "p": 5}, "p=5: expected 0.5, 1, 1.5, 2, 3, 4 or inf; for another p"),
        ({"metric": "minkowski", "p": "2"}, "p='2': expected 0.5, 1, 1.5"),
        ({"metric_params": {"V": [1]}}, "scale the columns of X"),
        ({"algorithm": "ball_tree"}, "'auto' takes the fastest, and all give the same answer"),
        ({"leaf_size": 10}, "leaf_size=10: expected 30"),
        ({"n_jobs": 0}, "n_jobs=0: expected None, -1 for all processors"),
        ({"device": "tpu"}, "tpu"),
        ({"memory": "1"}, "expected a number and a unit"),
    ],
)
def test_refuses(cls: Any, params: dict[str, Any], message: str) -> None:
    sizes = {"n_neighbors": 1, "radius": 2.0}
    given = {name: value for name, value in sizes.items() if name in cls().get_params()}
    with pytest.raises(ValueError, match=message):
        _searched(cls(**given, **params))


def _searched(estimator: Any) -> None:
    """Fit an estimator, and let it search if it has not."""
    estimator.fit(POINTS, [0, 1, 0, 1])
    if hasattr(estimator, "kneighbors"):
        estimator.kneighbors(POINTS)
    elif hasattr(estimator, "radius_neighbors"):
        estimator.radius_neighbors(POINTS)


def test_metrics_by_all_their_names() -> None:
    assert [metric_of("minkowski", p, None) for p in (1, 2, 2.0, np.inf)] == ["l1", "euclidean", "euclidean", "linf"]
    for p in (0.5, 1.5, 3, 4.0):
        assert metric_of("minkowski", p, None) == metric_of(f"minkowski:{p}", 2, None) == f"minkowski:{p:g}"
    assert [metric_of(name, 7, {}) for name in ("L2", "manhattan", "Euclidean")] == ["euclidean", "l1", "euclidean"]
    for name, record in METRICS.items():
        if not record.descending:
            assert metric_of(name, 2, None) == name


def test_jobs_count_down_from_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "4")
    assert [threads_of(n_jobs) for n_jobs in (None, -1, -2, -3, -9, 3)] == [None, None, 3, 2, 1, 3]


@pytest.mark.parametrize("radius", [-1.0, float("nan"), "1"])
@pytest.mark.parametrize("cls", [cls for cls in ALL if {"radius", "eps"} & cls().get_params().keys()])
def test_radii_that_are_none_are_refused(cls: Any, radius: Any) -> None:
    name = "eps" if cls is estimators.DBSCAN else "radius"
    with pytest.raises((ValueError, TypeError), match=f"{name}={radius!r}: expected a number"):
        cls(**{name: radius}).fit(POINTS, [0, 1, 0, 1])


@pytest.mark.parametrize("cls", [cls for cls in ALL if "weights" in cls().get_params()])
def test_weights_that_are_not_known_are_refused(cls: Any) -> None:
    with pytest.raises(ValueError, match="weights='far': expected 'uniform', 'distance' or a function"):
        cls(weights="far").fit(POINTS, [0, 1, 0, 1])


def test_haversine_and_weights_of_columns() -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.uniform(-1.5, 1.5, 60), rng.uniform(-3, 3, 60)], axis=1)
    choices: list[dict[str, Any]] = [{"metric": "haversine"}, {"p": 1, "metric_params": {"w": [2.0, 0.5]}}]
    for given in choices:
        ours = estimators.NearestNeighbors(n_neighbors=4, **given).fit(rows)
        theirs = sklearn.neighbors.NearestNeighbors(n_neighbors=4, **given).fit(rows)
        for found, expected in zip(ours.kneighbors(rows), theirs.kneighbors(rows), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-14)
        assert ours.effective_metric_params_ == given.get("metric_params", {})
    with pytest.raises(ValueError, match="weights: got -1"):
        estimators.NearestNeighbors(metric_params={"w": [-1.0, 1.0]}).fit(rows)
