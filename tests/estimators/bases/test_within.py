"""All rows within a radius: the lists of the reference, and scikit-learn's where distances are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn import neighbors
from sklearn.exceptions import NotFittedError

from tests.helpers.radius_estimators import EXACT, HOSTILE, NAMES, lists_of, parts_of, radius_on_a_value
from tonari.estimators import NearestNeighbors, RadiusNeighborsClassifier


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev", "cosine", "sqeuclidean"])
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_the_reference_s(kind: str, metric: str, algorithm: str, dtype: Any) -> None:
    if metric == "cosine" and algorithm == "kd_tree":
        pytest.skip("trees do not bound angles")
    points, queries = HOSTILE[kind](63, 3).astype(dtype), HOSTILE[kind](7, 3, seed=1).astype(dtype)
    name = NAMES.get(metric, metric)
    radius = radius_on_a_value(points, name)
    nearest = NearestNeighbors(radius=radius, metric=metric, algorithm=algorithm).fit(points)
    for x, own in ((queries, False), (points, False), (None, True)):
        truth = lists_of(points if x is None else x, points, radius, name, own=own)
        distances, indices = nearest.radius_neighbors(x)
        assert distances.dtype == indices.dtype == object
        for mine, right in zip(indices, parts_of(truth, truth.indices), strict=True):
            assert mine.dtype == np.int64
            np.testing.assert_array_equal(mine, right)
        for mine, right in zip(distances, parts_of(truth, truth.distances), strict=True):
            assert mine.dtype == right.dtype
            np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("metric", ["minkowski", "manhattan", "chebyshev"])
@pytest.mark.parametrize("n", [1, 60])
def test_lists_and_graphs_are_scikit_learns(kind: str, metric: str, n: int) -> None:
    points = EXACT[kind](n, 3).astype(np.float64)
    given: dict[str, Any] = {"radius": 2.0, "metric": metric}
    ours = NearestNeighbors(**given).fit(points)
    theirs = neighbors.NearestNeighbors(**given, algorithm="kd_tree").fit(points)
    for x, radius in ((points, None), (None, None), (points[:9], 1.0), (points, 0.0), (points[:9], np.arange(9.0)[:n])):
        found, expected = ours.radius_neighbors(x, radius), theirs.radius_neighbors(x, radius)
        alone = ours.radius_neighbors(x, radius, return_distance=False)
        for row, (distances, indices) in enumerate(zip(*expected, strict=True)):
            order = np.lexsort((indices, distances))
            np.testing.assert_array_equal(found[0][row], distances[order])
            np.testing.assert_array_equal(found[1][row], indices[order])
            np.testing.assert_array_equal(alone[row], indices[order])
        for mode in ("connectivity", "distance"):
            one, other = ours.radius_neighbors_graph(x, radius, mode), theirs.radius_neighbors_graph(x, radius, mode)
            assert (one.format, one.shape, one.nnz, one.dtype) == (other.format, other.shape, other.nnz, other.dtype)
            np.testing.assert_array_equal(one.toarray(), other.toarray())


def test_lists_are_sorted_and_rows_without_neighbours_have_empty_ones() -> None:
    points = np.array([[3.0], [0.0], [1.0], [1.0]], np.float32)
    nearest = NearestNeighbors(radius=1.0).fit(points)
    distances, indices = nearest.radius_neighbors([[0.0], [9.0]], sort_results=True)
    assert [each.tolist() for each in indices] == [[1, 2, 3], []]
    assert [each.tolist() for each in distances] == [[0.0, 1.0, 1.0], []]
    graph = nearest.radius_neighbors_graph(mode="distance", sort_results=True)
    assert graph.indices.tolist() == [2, 3, 3, 1, 2, 1]
    assert graph.indptr.tolist() == [0, 0, 2, 4, 6]


def test_what_makes_no_sense_is_refused() -> None:
    points = np.eye(4)
    with pytest.raises(NotFittedError):
        NearestNeighbors().radius_neighbors(points)
    nearest = NearestNeighbors().fit(points)
    with pytest.raises(ValueError, match="return_distance must be True if sort_results is True"):
        nearest.radius_neighbors(points, return_distance=False, sort_results=True)
    with pytest.raises(ValueError, match="mode='both': expected 'connectivity' or 'distance'"):
        nearest.radius_neighbors_graph(points, mode="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="radius"):
        nearest.radius_neighbors(points, radius=-1.0)


def test_haversine_and_weights_of_columns() -> None:
    rng = np.random.default_rng(0)
    rows = np.stack([rng.uniform(-1.5, 1.5, 60), rng.uniform(-3, 3, 60)], axis=1)
    choices: list[dict[str, Any]] = [{"metric": "haversine"}, {"p": 1, "metric_params": {"w": [2.0, 0.5]}}]
    for given in choices:
        ours = NearestNeighbors(radius=0.7, **given).fit(rows)
        theirs = neighbors.NearestNeighbors(radius=0.7, **given).fit(rows)
        for x in (rows[:20], None):
            one, other = (each.radius_neighbors_graph(x, mode="distance") for each in (ours, theirs))
            np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-14)


@pytest.mark.parametrize("metric", ["precomputed", "function"])
def test_distances_of_the_caller_are_searched_too(metric: str) -> None:
    points, y = EXACT["grid"](60, 3), np.arange(60) % 3
    matrix = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    given: dict[str, Any] = {
        "metric": metric if metric == "precomputed" else lambda a, b: np.sqrt(((a - b) ** 2).sum())
    }
    rows = matrix if metric == "precomputed" else points
    found = NearestNeighbors(radius=2.0, **given).fit(rows)
    for x in (None, slice(0, 9)):
        expected = NearestNeighbors(radius=2.0).fit(points).radius_neighbors(None if x is None else points[x])[1]
        for mine, right in zip(found.radius_neighbors(None if x is None else rows[x])[1], expected, strict=True):
            np.testing.assert_array_equal(mine, right)
        ours = RadiusNeighborsClassifier(radius=2.0, outlier_label=0, **given).fit(rows, y)
        plain = RadiusNeighborsClassifier(radius=2.0, outlier_label=0).fit(points, y)
        np.testing.assert_array_equal(
            ours.predict(None if x is None else rows[x]), plain.predict(None if x is None else points[x])
        )
