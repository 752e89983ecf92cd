"""Numbers that describe a graph, compared with counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, consumers
from tonari.core.results.neighbors import Neighbors
from tonari.graph import tuning
from tonari.graph.lists import Lists
from tonari.graph.statistics import (
    distances_at,
    histogram,
    hubness,
    local_dimension,
    missing_neighbours,
    range_of,
    zero_distances,
)
from tonari.nn_descent.planning.intrinsic_dimension import intrinsic_dimension


def _lists(distances: Any, indices: Any, metric: str = "euclidean", include_self: bool = False) -> Lists:
    found = Neighbors(np.array(distances, np.float32), np.array(indices, np.int32))
    return Lists(found, metric, "exact", include_self, None, None)


@pytest.fixture(autouse=True, params=[1, 1 << 22])
def _in_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute one row at a time, and all rows at once."""
    monkeypatch.setattr(tuning, "READ_AT_ONCE", request.param)


# ---------------------------------------------------------------- distances


def test_missing_neighbours_do_not_count() -> None:
    lists = _lists([[0, 4], [0, np.inf], [1, 2]], [[1, 2], [0, -1], [0, 1]])
    assert distances_at(lists, 0).tolist() == [0, 0, 1]
    assert distances_at(lists, -1).tolist() == [4, 2]
    assert zero_distances(lists) == 2
    assert missing_neighbours(lists) == 1


def test_self_does_not_count() -> None:
    lists = _lists([[0, 3], [0, 3]], [[0, 1], [1, 0]], include_self=True)
    assert distances_at(lists, 0).tolist() == [3, 3]
    assert zero_distances(lists) == 0
    assert len(distances_at(_lists([[0]], [[0]], include_self=True), 0)) == 0


@pytest.mark.parametrize("column", [0, -1])
def test_a_column_without_neighbours_has_no_range(column: int) -> None:
    assert range_of(distances_at(_lists([[np.inf]], [[-1]]), column)) is None


def test_ranges_have_no_infinite_values() -> None:
    assert range_of(np.array([1.0, 2.0, 6.0])) == {"min": 1, "median": 2, "max": 6}
    assert range_of(np.array([1.0, 2.0, np.inf])) == {"min": 1, "median": 2, "max": None}


def test_zero_similarity_does_not_mean_equal() -> None:
    assert zero_distances(_lists([[0], [0]], [[1], [0]], metric="inner_product")) is None


# ---------------------------------------------------------------- dimension


@pytest.mark.parametrize("include_self", [False, True])
def test_the_dimension_at_each_point_is_levina_and_bickels(include_self: bool) -> None:
    points, _ = consumers.clusters(60, copies=4)
    graph = tonari.knn_graph(points, 9 + include_self, include_self=include_self)
    assert zero_distances(graph.lists) == 4 * 3
    inverses, counts, each = [], [], []
    for row in graph.distances[:, int(include_self) :].astype(np.float64):
        logs = [np.log(row[-1] / near) for near in row[:-1] if near > 0]
        if sum(logs) > 0:
            inverses.append(np.mean(logs))
            counts.append(len(logs))
            each.append(1 / np.mean(logs))
    found = local_dimension(graph.lists)
    assert found is not None
    np.testing.assert_allclose(found.each, each, rtol=1e-12)
    assert found.mean == pytest.approx(1 / np.average(inverses, weights=counts), rel=1e-12)


def test_a_point_with_one_distance_counts_in_the_mean() -> None:
    lists = _lists([[1, 2], [1, 2], [1, 1]], [[1, 2], [0, 2], [0, 1]])
    found = local_dimension(lists)
    assert found is not None
    np.testing.assert_allclose(found.each, 2 * [1 / np.log(2)])
    assert found.mean == pytest.approx(intrinsic_dimension(lists.found.distances)) == pytest.approx(1.5 / np.log(2))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_the_dimension_is_that_of_what_the_points_fill(metric: str) -> None:
    plane = np.random.default_rng(0).random((1500, 2)) @ checks.gaussian(2, 8, dtype=np.float64)
    found = local_dimension(tonari.knn_graph(plane, 20, metric=metric).lists)
    assert found is not None
    assert found.mean == pytest.approx(2, abs=0.15)


@pytest.mark.parametrize(
    "lists",
    [
        _lists([[1], [1]], [[1], [0]]),
        _lists([[1, 1], [1, 1], [1, 1]], [[1, 2], [0, 2], [0, 1]]),
        _lists([[1, np.inf], [1, np.inf]], [[1, -1], [0, -1]]),
        _lists([[2, 1], [2, 1], [2, 1]], [[1, 2], [0, 2], [0, 1]], metric="inner_product"),
        _lists([[0, 0], [0, 0], [0, 0]], [[1, 2], [0, 2], [0, 1]]),
    ],
)
def test_a_dimension_that_nothing_determines(lists: Lists) -> None:
    assert local_dimension(lists) is None


def test_wide_ratios_have_a_dimension() -> None:
    found = Neighbors(np.array([[5e-324, 1e308]] * 2), np.array([[1, 2]] * 2))
    assert local_dimension(Lists(found, "euclidean", "by hand")).mean == pytest.approx(1 / 1453.6, rel=1e-3)  # type: ignore[union-attr]


# ---------------------------------------------------------------- hubs


def test_hubs_are_the_most_frequent_neighbours() -> None:
    found = hubness(np.array([3, 0, 9, 3, 0, 1]), largest=3)
    assert found.hubs == [(2, 9), (0, 3), (3, 3)]
    assert found.antihubs == 2
    counts = np.array([3, 0, 9, 3, 0, 1])
    assert found.skewness == pytest.approx(np.mean((counts - counts.mean()) ** 3) / np.std(counts) ** 3)


def test_a_ring_has_no_hubs() -> None:
    assert hubness(np.full(7, 2)).skewness == 0
    assert hubness(np.full(7, 2)).antihubs == 0


# ---------------------------------------------------------------- histograms


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_histograms_count_all_values_but_the_tails(count: int) -> None:
    values = np.random.default_rng(0).standard_normal(count)
    found = histogram(values)
    assert found is not None
    assert found.counts.sum() + found.outside == count
    assert found.outside == int(((values < found.edges[0]) | (values > found.edges[-1])).sum()) <= 0.01 * count
    for edge, after, bar in zip(found.edges[:-1], found.edges[1:], found.counts[:-1], strict=False):
        assert bar == int(((values >= edge) & (values < after)).sum())


def test_a_far_value_does_not_flatten_the_others() -> None:
    found = histogram(np.append(np.linspace(0, 1, 999), 1e9))
    assert found is not None
    assert found.edges[-1] <= 1
    assert (found.counts > 0).all()


def test_bins_of_whole_numbers_lie_around_them() -> None:
    found = histogram(np.array([0, 1, 1, 4]), whole=True)
    assert found is not None
    assert found.edges.tolist() == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert found.counts.tolist() == [1, 2, 0, 0, 1]
    wide = histogram(np.array([0, 5, 99]), bins=10, whole=True)
    assert wide is not None
    assert wide.edges.tolist() == [10 * step - 0.5 for step in range(11)]
    assert (wide.counts.sum(), wide.counts[0], wide.counts[-1]) == (3, 2, 1)


def test_histograms_of_one_value_and_of_none() -> None:
    found = histogram(np.full(5, 2.0))
    assert found is not None
    assert (found.counts.tolist(), found.outside) == ([5], 0)
    assert histogram(np.empty(0)) is None
    assert histogram(np.array([np.inf])) is None
    finite = histogram(np.array([1.0, 2.0, np.inf]))
    assert finite is not None
    assert (finite.counts.sum(), finite.outside) == (2, 1)
