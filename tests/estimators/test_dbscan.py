"""DBSCAN: scikit-learn's labels for the lists of the reference, within the memory budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import cluster
from sklearn.cluster._dbscan_inner import dbscan_inner

from tests.helpers import checks
from tests.helpers.radius_estimators import EXACT, HOSTILE, NAMES, lists_of, parts_of, peak_of, radius_on_a_value
from tonari.core.errors import BudgetExceeded
from tonari.estimators import DBSCAN, NearestNeighbors, tuning


def _expected(points: Any, eps: float, metric: str, min_samples: int, weights: Any = None) -> tuple[Any, Any]:
    """Return scikit-learn's labels for the lists of the reference, and the core rows."""
    truth = lists_of(points, points, eps, metric)
    lists = parts_of(truth, truth.indices.astype(np.intp))
    sums = [len(each) if weights is None else weights[each].sum() for each in lists]
    core, labels = (np.array(sums) >= min_samples).astype(np.uint8), np.full(len(points), -1, np.intp)
    neighborhoods = np.empty(len(points), object)
    neighborhoods[:] = lists
    dbscan_inner(core, neighborhoods, labels)
    return labels, np.flatnonzero(core)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev", "cosine", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("entries", [None, 150])
def test_clusters_are_those_of_the_reference_s_lists(
    kind: str, metric: str, dtype: Any, weighted: bool, entries: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entries is not None:
        monkeypatch.setattr(tuning, "RADIUS_ENTRIES", entries)
    points = HOSTILE[kind](120, 2).astype(dtype)
    weights = np.random.default_rng(0).integers(-1, 4, size=120) if weighted else None
    for share, min_samples in ((0.02, 4), (0.1, 12)):
        eps = radius_on_a_value(points, NAMES.get(metric, metric), share)
        if not eps:
            continue
        made = DBSCAN(eps=eps, min_samples=min_samples, metric=metric).fit(points, sample_weight=weights)
        labels, core = _expected(points, eps, NAMES.get(metric, metric), min_samples, weights)
        np.testing.assert_array_equal(made.labels_, labels)
        np.testing.assert_array_equal(made.core_sample_indices_, core)
        np.testing.assert_array_equal(made.components_, points[core])
        assert (made.labels_.dtype, made.components_.dtype) == (np.int64, dtype)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("n", [1, 2, 200])
def test_clusters_are_scikit_learns(kind: str, metric: str, n: int) -> None:
    points = EXACT[kind](n, 3).astype(np.float64)
    for eps in (1.0, 2.0):
        for min_samples in (1, 2, 9, n):
            given = {"eps": eps, "min_samples": min_samples, "metric": metric}
            ours, theirs = DBSCAN(**given).fit(points), cluster.DBSCAN(**given, algorithm="kd_tree").fit(points)
            for name in ("labels_", "core_sample_indices_", "components_"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_a_row_between_two_clusters_has_the_first_one_s_label() -> None:
    points = np.array([[9.0], [2.0], [5.5], [8.0], [3.0], [10.0], [2.5], [8.5]])
    assert DBSCAN(eps=2.5, min_samples=4).fit_predict(points).tolist() == [0, 1, 0, 0, 1, 0, 1, 0]
    assert DBSCAN(eps=2.5, min_samples=4).fit_predict(12 - points).tolist() == [0, 1, 0, 0, 1, 0, 1, 0]
    assert DBSCAN(eps=2.5, min_samples=4).fit_predict(points[1:]).tolist() == [
        1,
        0,
        0,
        1,
        0,
        1,
        0,
    ]  # 2.0 is not a core row


def test_haversine_and_weights_of_columns() -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.uniform(-1.5, 1.5, 200), rng.uniform(-3, 3, 200)], axis=1)
    choices: list[dict[str, Any]] = [
        {"metric": "haversine"},
        {"metric": "minkowski", "p": 1, "metric_params": {"w": [2.0, 0.5]}},
    ]
    for given in choices:
        ours, theirs = (library(eps=0.3, **given).fit(rows) for library in (DBSCAN, cluster.DBSCAN))
        np.testing.assert_array_equal(ours.labels_, theirs.labels_)
        assert ours.labels_.max() > 1


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
@pytest.mark.parametrize("weighted", [False, True])
def test_memory_is_never_exceeded(algorithm: str, weighted: bool) -> None:
    """The lists of all rows would take several times the budget."""
    points = np.random.default_rng(0).random((4_000, 2))
    weights = np.ones(4_000) if weighted else None
    whole = DBSCAN(eps=0.3, algorithm=algorithm, n_jobs=1).fit(points, sample_weight=weights)
    limit = 14_000_000
    made = DBSCAN(eps=0.3, algorithm=algorithm, n_jobs=1, memory=limit)
    peak = peak_of(lambda: made.fit(points, sample_weight=weights))
    results = made.labels_.nbytes + made.core_sample_indices_.nbytes + made.components_.nbytes
    assert peak < limit + results
    pairs = sum(len(each) for each in NearestNeighbors(radius=0.3).fit(points).radius_neighbors(points)[1])
    assert 12 * pairs > 1.5 * limit
    np.testing.assert_array_equal(made.labels_, whole.labels_)


def test_copies_of_wide_rows_keep_to_the_memory() -> None:
    """The rows that are no core rows would take more than the budget, all at once."""
    points = np.repeat(np.random.default_rng(0).random((560, 2_000)), 2, axis=0)
    made = DBSCAN(eps=0.1, n_jobs=1, min_samples=3, memory=16_000_000)
    assert peak_of(lambda: made.fit(points)) < 16_000_000 < points.nbytes
    assert (made.labels_ == -1).all()


def test_too_little_memory_is_refused_with_what_is_enough() -> None:
    points = np.random.default_rng(0).random((2_000, 2))
    with pytest.raises(BudgetExceeded, match="memory=100000: 2000 rows take 256000 bytes before a search"):
        DBSCAN(eps=0.3, memory=100_000).fit(points)
    with pytest.raises(BudgetExceeded, match="memory=500000: allow at least") as raised:
        DBSCAN(eps=0.3, memory=500_000).fit(points)
    found = DBSCAN(eps=0.3, memory=raised.value.least).fit(points)
    np.testing.assert_array_equal(found.labels_, DBSCAN(eps=0.3).fit(points).labels_)


def test_what_makes_no_sense_is_refused() -> None:
    points = checks.gaussian(5, 3)
    for eps in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=f"eps={eps!r}: expected a number above 0"):
            DBSCAN(eps=eps).fit(points)
    with pytest.raises(ValueError, match="min_samples=0: expected a whole number of at least 1"):
        DBSCAN(min_samples=0).fit(points)
    with pytest.raises(ValueError, match="sample_weight"):
        DBSCAN().fit(points, sample_weight=[1.0, 2.0])
