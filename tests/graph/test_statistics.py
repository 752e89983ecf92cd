"""Numbers that describe the distances of a graph."""

import numpy as np
import pytest

from tonari.core.neighbors import Neighbors
from tonari.graph.lists import Lists
from tonari.graph.statistics import distance_range, zero_distances


def _lists(distances, indices, metric="euclidean", include_self=False):
    found = Neighbors(np.array(distances, np.float32), np.array(indices, np.int32))
    return Lists(found, metric, "exact", include_self, None, None)


def test_missing_neighbours_do_not_count():
    lists = _lists([[0, 4], [0, np.inf], [1, 2]], [[1, 2], [0, -1], [0, 1]])
    assert distance_range(lists, 0) == {"min": 0, "median": 0, "max": 1}
    assert distance_range(lists, -1) == {"min": 2, "median": 3, "max": 4}
    assert zero_distances(lists) == 2


def test_self_does_not_count():
    lists = _lists([[0, 3], [0, 3]], [[0, 1], [1, 0]], include_self=True)
    assert distance_range(lists, 0) == {"min": 3, "median": 3, "max": 3}
    assert zero_distances(lists) == 0
    assert distance_range(_lists([[0]], [[0]], include_self=True), 0) is None


@pytest.mark.parametrize("column", [0, -1])
def test_a_column_without_neighbours_has_no_range(column):
    assert distance_range(_lists([[np.inf]], [[-1]]), column) is None


def test_zero_similarity_does_not_mean_equal():
    assert zero_distances(_lists([[0], [0]], [[1], [0]], metric="inner_product")) is None
