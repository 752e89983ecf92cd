"""Shared parts of the estimators: rows that are kept, pickled and forgotten, and refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import tonari
from tests.helpers import checks
from tests.helpers.sparse_rows import words
from tonari.estimators import (
    DBSCAN,
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    LocalOutlierFactor,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    RadiusNeighborsTransformer,
)

RADIUS = 0.9


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


def estimators() -> list[Any]:
    """Every estimator, with a radius that finds some rows."""
    return [
        NearestNeighbors(n_neighbors=6, radius=RADIUS),
        KNeighborsClassifier(weights="distance"),
        KNeighborsRegressor(),
        KNeighborsTransformer(mode="distance"),
        RadiusNeighborsClassifier(RADIUS, outlier_label=0),
        RadiusNeighborsRegressor(RADIUS),
        RadiusNeighborsTransformer(radius=RADIUS),
        LocalOutlierFactor(novelty=True),
        DBSCAN(eps=0.4, min_samples=4),
    ]


def answers_of(estimator: Any, rows: Any, queries: Any, y: Any) -> list[Any]:
    """Everything that an estimator says of rows and queries, as arrays."""
    fitted = estimator.fit(rows, y)
    found: list[Any] = [fitted.labels_, fitted.components_] if hasattr(fitted, "labels_") else []
    for name in ("kneighbors", "kneighbors_graph", "radius_neighbors", "radius_neighbors_graph", "predict"):
        for asked in (queries, None):
            if hasattr(fitted, name):
                answer = getattr(fitted, name)(asked)
                found += answer if isinstance(answer, tuple) else [answer]
    for name in ("predict_proba", "score_samples", "transform"):
        found += [getattr(fitted, name)(queries)] if hasattr(fitted, name) else []
    return [part.toarray() if hasattr(part, "toarray") else part for part in found]


@pytest.mark.parametrize("memory", [None, "16MB"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "weights"])
@pytest.mark.parametrize("estimator", estimators(), ids=lambda one: type(one).__name__)
@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors:UserWarning")
def test_sparse_rows_have_the_answers_of_dense_rows(estimator: Any, metric: str, memory: str | None) -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    rows, queries, y = words(120, 20).astype(np.float32), words(15, 20, 1).astype(np.float32), np.arange(120) % 3
    options: dict[str, Any] = {"metric": metric, "memory": memory}
    if metric == "weights":
        options |= {"metric": "euclidean", "metric_params": {"w": 1.0 + np.arange(20) % 2}}
    estimator = clone(estimator).set_params(**options)
    ours = answers_of(estimator, sparse.csr_matrix(rows), sparse.csr_array(queries), y)
    others = answers_of(estimator, rows, queries, y)
    assert len(ours) == len(others) > 0
    for a, b in zip(ours, others, strict=True):
        parts = zip(a, b, strict=True) if a.dtype == object else [(a, b)]
        assert all(p.dtype == q.dtype and p.tobytes() == q.tobytes() for p, q in parts)


def test_sparse_rows_may_be_sets() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    rows = words(80, 20) != 0
    found = NearestNeighbors(n_neighbors=4, metric="jaccard").fit(sparse.csr_array(rows)).kneighbors()
    graph = tonari.knn_graph(rows, 4, metric="jaccard")
    assert np.array_equal(found[1], graph.indices)
    assert np.array_equal(found[0], graph.distances)
    with pytest.raises(ValueError, match=r"compares rows of bits, .* or sparse rows of sets"):
        NearestNeighbors(metric="jaccard").fit(rows)


TEXTS = [
    "a cat sat on a mat",
    "a cat ate a rat",
    "the rat sat on the cat",
    "stocks fell today",
    "stocks rose today",
] * 3


@pytest.mark.parametrize("vectorizer", ["TfidfVectorizer", "CountVectorizer"])
def test_pipelines_of_texts(vectorizer: str) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    made = getattr(text, vectorizer)()
    topics = np.array([0, 0, 0, 1, 1] * 3)
    pipeline = make_pipeline(made, KNeighborsClassifier(3, metric="cosine")).fit(TEXTS, topics)
    assert pipeline.predict(["the mat of a cat", "stocks of today"]).tolist() == [0, 1]
    rows = made.fit_transform(TEXTS)
    graph = tonari.knn_graph(rows, 2, metric="cosine")
    dense = tonari.knn_graph(rows.toarray(), 2, metric="cosine")
    assert np.array_equal(graph.indices, dense.indices)
    assert graph.to_csr().shape == (15, 15)
