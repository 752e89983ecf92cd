"""Public functions for radius searches, with every kind of argument, and refused arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import needs_torch
from tests.helpers.radius_checks import all_values, assert_same_within, later_than
from tonari.core.results.radius_neighbors import RadiusNeighbors, limits_for, nearest_of
from tonari.metrics import METRICS
from tonari.metrics.reference import brute_within

POINTS = np.concatenate([checks.gaussian(150, 6), checks.gaussian(50, 6)])
QUERIES = checks.gaussian(20, 6, 1)
TREE = ("euclidean", "sqeuclidean", "l1", "linf")


def points_for(metric: str) -> checks.Array:
    return np.abs(POINTS) if METRICS[metric].nonnegative else POINTS


def asked_of(metric: str, share: float = 0.2) -> dict[str, Any]:
    """Return a radius, or a smallest similarity, with some points inside and one point exactly on it."""
    points = points_for(metric)
    value = float(np.sort(all_values(points[:20], points, metric).distances)[int(4000 * share)])
    return {"min_similarity": value} if METRICS[metric].descending else {"radius": value}


def truth_of(queries: Any, metric: str, asked: dict[str, Any], *, closed: bool = True, own: Any = None) -> Any:
    descending = METRICS[metric].descending
    limits = limits_for(*asked.values(), len(queries), np.float32, closed=closed, descending=descending)
    return brute_within(queries, points_for(metric), limits, metric, self_ids=own)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
def test_every_verb(metric: str, closed: bool, method: str) -> None:
    if method == "kdtree" and metric not in TREE:
        pytest.skip("no tree bounds this metric")
    points, asked = points_for(metric), asked_of(metric)
    given: dict[str, Any] = {**asked, "metric": metric, "closed": closed, "method": method}
    truth = truth_of(points[:20], metric, asked, closed=closed)
    assert_same_within(tonari.radius_search(points[:20], points, **given), truth)
    assert tonari.radius_count(points[:20], points, **given).tolist() == np.diff(truth.indptr).tolist()
    graph = truth_of(points, metric, asked, closed=closed, own=np.arange(200))
    assert_same_within(tonari.radius_graph(points, **given), graph)
    assert_pairs(tonari.pairs(points, **given), graph)
    index = tonari.Index(points, metric=metric, method=method)
    del given["metric"], given["method"]
    assert_same_within(index.radius_search(points[:20], **given), truth)
    assert index.radius_count(points[:20], **given).tolist() == np.diff(truth.indptr).tolist()


def assert_pairs(found: Any, graph: RadiusNeighbors) -> None:
    half = later_than(graph)
    assert isinstance(found, tonari.Pairs)
    assert found.left.dtype == found.right.dtype == np.int32
    assert found.left.tolist() == np.repeat(np.arange(200), np.diff(half.indptr)).tolist()
    assert found.right.tolist() == half.indices.tolist()
    assert found.distances.tobytes() == half.distances.tobytes()


def test_points_on_the_radius_are_inside_if_it_is_closed() -> None:
    line = np.arange(10, dtype=np.float32)[:, None]
    for closed, count in ((True, 3), (False, 1)):
        assert tonari.radius_count(line[5:6], line, radius=1, closed=closed).tolist() == [count]
        assert tonari.radius_count(line[5:6], line, radius=1, metric="sqeuclidean", closed=closed).tolist() == [count]
    assert tonari.radius_count(line[5:6], line, radius=0).tolist() == [1]
    assert tonari.radius_count(line[5:6], line, radius=0, closed=False).tolist() == [0]
    assert tonari.radius_count(line[5:6], line, radius=np.inf).tolist() == [10]
    assert tonari.radius_count(line[5:6], line, radius=4, metric="sqeuclidean").tolist() == [5]  # squared distances


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("similarity", [0.95, 0.0, 1.0, 1.5, -3.0])
def test_a_least_similarity_of_angles_is_a_distance(metric: str, similarity: float) -> None:
    found = tonari.radius_search(QUERIES, POINTS, min_similarity=similarity, metric=metric)
    limits = limits_for(1.0 - similarity, 20, np.float32, closed=True, descending=False)
    assert_same_within(found, brute_within(QUERIES, POINTS, limits, metric))


@pytest.mark.parametrize("most", [1, 3, 64, 65, 150, 1000])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("share", [0.1, 0.7])
def test_the_nearest_so_many_of_those_inside(most: int, metric: str, share: float) -> None:
    asked = asked_of(metric, share if metric == "euclidean" else 1 - share)
    found = tonari.radius_search(POINTS[:20], POINTS, **asked, metric=metric, max_neighbors=most)
    assert_same_within(found, nearest_by_hand(truth_of(POINTS[:20], metric, asked), most))
    graph = tonari.radius_graph(POINTS, **asked, metric=metric, max_neighbors=most)
    assert_same_within(graph, nearest_by_hand(truth_of(POINTS, metric, asked, own=np.arange(200)), most))
    index = tonari.Index(POINTS, metric=metric)
    assert_same_within(index.radius_search(POINTS[:20], **asked, max_neighbors=most), found)


def nearest_by_hand(truth: RadiusNeighbors, most: int) -> RadiusNeighbors:
    rows = [range(a, min(b, a + most)) for a, b in zip(truth.indptr[:-1], truth.indptr[1:], strict=True)]
    places = np.array([at for row in rows for at in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    assert_same_within(nearest_of(truth, most), RadiusNeighbors(indptr, truth.indices[places], truth.distances[places]))
    return RadiusNeighbors(indptr, truth.indices[places], truth.distances[places])


def test_one_radius_for_each_query() -> None:
    radii = np.linspace(0, 4, 20)
    truth = brute_within(QUERIES, POINTS, limits_for(radii, 20, np.float32, closed=True, descending=False))
    assert_same_within(tonari.radius_search(QUERIES, POINTS, radius=radii), truth)
    assert_same_within(tonari.radius_search(QUERIES, POINTS, radius=list(radii)), truth)


@pytest.mark.parametrize("points", [1, 2])
def test_very_few_points(points: int) -> None:
    few = POINTS[:points]
    assert tonari.radius_graph(few, 100.0).indptr.tolist() == [[0, 0], [0, 1, 2]][points - 1]
    assert tonari.radius_graph(few, 100.0, max_neighbors=2).indptr.tolist() == [[0, 0], [0, 1, 2]][points - 1]
    assert len(tonari.pairs(few, 100.0).left) == points - 1  # type: ignore[union-attr]
    assert tonari.radius_count(few, few, 100.0).tolist() == [points] * points


@needs_torch
def test_tensors_in_tensors_out() -> None:
    import torch

    queries, points = torch.from_numpy(QUERIES), torch.from_numpy(POINTS)
    found = tonari.radius_search(queries, points, torch.full((20,), 2.0))
    assert all(isinstance(part, torch.Tensor) for part in found)
    assert_same_within(RadiusNeighbors(*(part.numpy() for part in found)), tonari.radius_search(QUERIES, POINTS, 2.0))
    assert isinstance(tonari.radius_count(queries, points, 2.0), torch.Tensor)
    assert isinstance(tonari.pairs(points, 1.0)[0], torch.Tensor)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "radius: is missing"),
    ({"metric": "cosine"}, "radius or min_similarity: is missing"),
    ({"metric": "inner_product"}, "min_similarity: is missing"),
    ({"radius": -1.0}, "radius must not be negative"),
    ({"radius": [1.0] * 19 + [-1.0]}, "-1.0 for query 19; a radius must not be negative"),
    ({"radius": np.nan}, "radius: got nan"),
    ({"radius": [1.0] * 3}, r"radius: has shape \(3,\), expected one number or one for each of 20 queries"),
    ({"radius": "1"}, "radius: expected a number or an array of numbers, got str"),
    ({"radius": True}, "radius: expected a number"),
    ({"radius": 1.0, "min_similarity": 1.0, "metric": "cosine"}, "both radius and min_similarity"),
    ({"radius": 1.0, "metric": "inner_product"}, "pass min_similarity="),
    ({"min_similarity": 1.0}, "pass radius="),
    ({"min_similarity": np.inf, "metric": "inner_product"}, "min_similarity: got inf"),
    ({"min_similarity": np.nan, "metric": "cosine"}, "min_similarity: got nan"),
    ({"radius": 1.0, "closed": "yes"}, "closed='yes'"),
    ({"radius": 1.0, "max_neighbors": 0}, "max_neighbors=0"),
    ({"radius": 1.0, "method": "nn-descent"}, "builds graphs"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        tonari.radius_search(QUERIES, POINTS, **given)
