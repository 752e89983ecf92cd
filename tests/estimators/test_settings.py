"""scikit-learn's parameters are either supported, or refused with the nearest fix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

import sklearn.cluster
import sklearn.impute
import sklearn.neighbors

from tonari import estimators
from tonari.estimators.settings import metric_of, threads_of
from tonari.metrics import METRICS

POINTS = np.eye(4)
HOMES = {"DBSCAN": sklearn.cluster, "KNNImputer": sklearn.impute}
ALL = [getattr(estimators, name) for name in estimators.__all__ if name != "KNNImputer"]


@pytest.mark.parametrize("name", estimators.__all__)
def test_parameters_are_scikit_learns_with_their_defaults(name: str) -> None:
    ours = getattr(estimators, name)().get_params()
    theirs = getattr(HOMES.get(name, sklearn.neighbors), name)().get_params()
    assert theirs.items() <= ours.items()
    assert set(ours) - set(theirs) == ({"n_jobs", "memory"} if name == "KNNImputer" else {"device", "memory"})


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": "dice"}, "which orders rows alike; use metric='jaccard'"),
        ({"metric": np.linalg.norm, "algorithm": "kd_tree"}, "allows 'exact' alone"),
        ({"metric": np.linalg.norm, "device": "cuda"}, "searched on the CPU alone"),
        ({"metric": "seuclidean"}, "pass V=, such as"),
        ({"metric": "mahalanobis"}, "pass VI=, the inverse of the covariance"),
        ({"metric": "mahalanobis", "metric_params": {"w": [1]}}, "expected None or {'VI', 'V': ...}, as metric='maha"),
        (
            {"metric": "mahalanobis", "metric_params": {"VI": np.eye(3)}},
            "VI or covariance: is for rows of 3 columns, but points have 4",
        ),
        ({"metric": "inner_product"}, "is a similarity, .* use metric='cosine', or tonari.search"),
        ({"metric": "hamming"}, "metric='hamming': compares rows of bits"),
        ({"metric": "triton:mine"}, "expected one of"),
        ({"metric": "minkowski", "p": 5}, "p=5: expected 0.5, 1, 1.5, 2, 3, 4 or inf; for another p"),
        ({"metric": "minkowski", "p": "2"}, "p='2': expected 0.5, 1, 1.5"),
        ({"metric_params": {"V": [1]}}, "expected None or {'w': ...}, as metric=.*change the columns of X"),
        ({"algorithm": "ball_tree"}, "'auto' takes the fastest, and all give the same answer"),
        ({"leaf_size": 10}, "leaf_size=10: expected 30"),
        ({"n_jobs": 0}, "n_jobs=0: expected None, -1 for all processors"),
        ({"device": "tpu"}, "tpu"),
        ({"memory": "1"}, "expected a number and a unit"),
    ],
)
def test_refuses(cls: Any, params: dict[str, Any], message: str) -> None:
    if cls is estimators.DBSCAN and params.get("metric") is np.linalg.norm:
        message = "distances of the caller are not clustered here; use sklearn.cluster.DBSCAN"
    sizes = {"n_neighbors": 1, "radius": 2.0}
    given = {name: value for name, value in sizes.items() if name in cls().get_params()}
    with pytest.raises(ValueError, match=message):
        _searched(cls(**given, **params))


def _searched(estimator: Any) -> None:
    """Fit an estimator, and search with it if fitting did not."""
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


def test_maps_are_scikit_learns() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 4)) * [1.0, 5.0, 0.1, 2.0]
    shares = np.abs(rows) / np.abs(rows).sum(axis=1, keepdims=True)
    covariance = np.cov(rows.T)
    for given, x in (
        ({"metric": "mahalanobis", "metric_params": {"VI": np.linalg.inv(covariance)}}, rows),
        ({"metric": "seuclidean", "metric_params": {"V": rows.var(axis=0)}}, rows),
        ({"metric": "braycurtis"}, shares),
    ):
        ours = estimators.NearestNeighbors(n_neighbors=4, **given).fit(x)
        theirs = sklearn.neighbors.NearestNeighbors(n_neighbors=4, algorithm="brute", **given).fit(x)
        for queries in (x[:9], None):
            for found, expected in zip(ours.kneighbors(queries), theirs.kneighbors(queries), strict=True):
                np.testing.assert_allclose(found, expected, atol=1e-13)
    by_covariance = estimators.NearestNeighbors(metric="mahalanobis", metric_params={"V": covariance}).fit(rows)
    by_inverse = estimators.NearestNeighbors(metric="mahalanobis", metric_params={"VI": np.linalg.inv(covariance)})
    np.testing.assert_allclose(by_covariance.kneighbors(rows)[0], by_inverse.fit(rows).kneighbors(rows)[0], atol=1e-12)
    graph = estimators.KNeighborsTransformer(metric="seuclidean", metric_params={"V": [1.0, 25.0, 0.01, 4.0]})
    assert graph.fit_transform(rows).shape == (60, 60)


def manhattan(a: Any, b: Any, scale: float = 1.0) -> float:
    return scale * float(np.abs(a - b).sum())


@pytest.mark.parametrize("params", [None, {"scale": 3.0}])
def test_functions_of_two_rows_are_scikit_learns(params: Any) -> None:
    rows, labels = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 3
    given = {"metric": manhattan, "metric_params": params}
    for queries in (rows[:9] + 0.5, None):
        ours = estimators.NearestNeighbors(n_neighbors=4, **given).fit(rows)
        theirs = sklearn.neighbors.NearestNeighbors(n_neighbors=4, **given).fit(rows)
        for found, expected in zip(ours.kneighbors(queries), theirs.kneighbors(queries), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-14)
        assert ours.effective_metric_ is manhattan
    for name in ("KNeighborsClassifier", "KNeighborsRegressor"):
        ours, theirs = (getattr(where, name)(4, **given).fit(rows, labels) for where in (estimators, sklearn.neighbors))
        np.testing.assert_allclose(ours.predict(rows + 0.5), theirs.predict(rows + 0.5))
    ours, theirs = (where.KNeighborsTransformer(n_neighbors=4, **given) for where in (estimators, sklearn.neighbors))
    np.testing.assert_allclose(ours.fit_transform(rows).toarray(), theirs.fit_transform(rows).toarray(), atol=1e-14)


def test_matrices_of_distances_are_scikit_learns() -> None:
    rows, labels = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 3
    table, asked = (np.abs(x[:, None] - rows).sum(axis=2) for x in (rows, rows[:9] + 0.5))
    given = {"metric": "precomputed"}
    for queries in (asked, None):
        ours = estimators.NearestNeighbors(n_neighbors=4, **given).fit(table)
        theirs = sklearn.neighbors.NearestNeighbors(n_neighbors=4, **given).fit(table)
        for found, expected in zip(ours.kneighbors(queries), theirs.kneighbors(queries), strict=True):
            np.testing.assert_array_equal(found, expected)
    ours, theirs = (
        where.KNeighborsClassifier(4, **given).fit(table, labels) for where in (estimators, sklearn.neighbors)
    )
    np.testing.assert_array_equal(ours.predict(asked), theirs.predict(asked))
    assert ours.__sklearn_tags__().input_tags.pairwise
    assert not estimators.NearestNeighbors().__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match=r"X has the shape \(9, 40\), expected \(n, n\)"):
        estimators.NearestNeighbors(**given).fit(asked)
    with pytest.raises(ValueError, match="9 features"):
        ours.predict(asked[:, :9])


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
