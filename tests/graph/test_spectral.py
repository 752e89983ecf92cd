"""The map of a graph: known shapes, components, and many points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.graph import tuning
from tonari.graph.spectral import spectral_map


def _graph(indices: Any) -> tonari.KNNGraph:
    ids = np.array(indices, np.int32)
    return tonari.KNNGraph(ids, np.where(ids < 0, np.inf, 0.0), "euclidean", "by hand")


def _ring(n: int, seed: int = 0) -> tuple[Any, tonari.KNNGraph]:
    """Return the place of each point on a ring, and the graph of its two neighbours on the ring."""
    order = np.random.default_rng(seed).permutation(n)
    ids = np.empty((n, 2), np.int32)
    ids[order] = np.column_stack([np.roll(order, 1), np.roll(order, -1)])
    places = np.empty(n, np.int64)
    places[order] = np.arange(n)
    return places, _graph(ids)


@pytest.mark.parametrize("n", [3, 7, 64, 65, 500])
def test_a_ring_is_a_circle(n: int) -> None:
    places, graph = _ring(n)
    found = spectral_map(graph.lists)
    assert found is not None
    assert found.points.tolist() == list(range(n))
    assert (found.covered, found.component) == (n, n)
    radii = np.linalg.norm(found.positions, axis=1)
    np.testing.assert_allclose(radii, radii.mean(), rtol=1e-6)
    angles = np.unwrap(np.arctan2(*found.positions[np.argsort(places)].T))
    np.testing.assert_allclose(np.abs(np.diff(angles)), 2 * np.pi / n, rtol=1e-5)


@pytest.mark.parametrize("at_once", [100, 1 << 22])
def test_drawn_points_stand_for_those_around_them(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "READ_AT_ONCE", at_once)  # 50 rows, or all
    places, graph = _ring(1000)
    found = spectral_map(graph.lists, most=100, seed=1)
    assert found is not None
    assert len(found.points) == len(set(found.points.tolist())) == 100
    assert (found.covered, found.component) == (1000, 1000)
    angles = np.unwrap(np.arctan2(*found.positions[np.argsort(places[found.points])].T))
    steps = np.diff(angles)
    np.testing.assert_allclose(np.abs(steps), 2 * np.pi / 100, rtol=1e-5)  # after contraction, it is a ring of 100


def test_one_way_lists_are_enough_to_be_taken_in() -> None:
    chain = _graph([[1 if at == 0 else at - 1] for at in range(60)])
    found = spectral_map(chain.lists, most=5)
    assert found is not None
    assert found.points[0] > 1  # earlier points list none of the drawn points
    assert (len(found.points), found.covered) == (5, 60)
    first = found.positions[:, 0]
    assert (np.diff(first) > 0).all() or (np.diff(first) < 0).all()


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = tonari.knn_graph(checks.gaussian(600, 3), 4).lists
    whole = spectral_map(lists, most=40)
    monkeypatch.setattr(tuning, "READ_AT_ONCE", 20)
    parts = spectral_map(lists, most=40)
    assert whole is not None
    assert parts is not None
    np.testing.assert_array_equal(parts.positions, whole.positions)


def test_who_is_too_far_from_all_drawn_points_is_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "TAKEN_STEPS", 1)
    found = spectral_map(_ring(1000)[1].lists, most=300)
    assert found is not None
    assert found.covered < 1000


def test_the_map_is_of_the_largest_component() -> None:
    near = checks.gaussian(40, 3)
    points = np.concatenate([near[:15], near + 1e3, near[:9] - 1e3]).astype(np.float32)
    graph = tonari.knn_graph(points, 8)
    found = spectral_map(graph.lists)
    assert found is not None
    assert found.points.tolist() == list(range(15, 55))
    assert found.component == 40
    again = spectral_map(graph.lists, labels=graph.connected_components())
    assert again is not None
    np.testing.assert_array_equal(again.positions, found.positions)


def test_clusters_lie_apart() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    points = (rng.standard_normal((400, 5)) + 5.0 * labels[:, None]).astype(np.float32)
    points[:6] = np.linspace(0, 5, 6)[:, None]  # a bridge
    found = spectral_map(tonari.knn_graph(points, 10).lists)
    assert found is not None
    assert found.component == 400
    left = found.positions[:, 0] > np.median(found.positions[:, 0])
    assert abs(np.corrcoef(left[6:], labels[6:])[0, 1]) > 0.95


def test_two_points_have_no_map() -> None:
    assert spectral_map(_graph([[1], [0], [3], [2]]).lists) is None
    assert spectral_map(_graph([[-1], [-1], [-1]]).lists) is None
