"""Prim's algorithm, compared with SciPy for distinct weights, and by hand for equal ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import checks
from tonari.spanning.reference import reachability, spanning_tree


@pytest.mark.parametrize("min_samples", [1, 2, 5, 40])
def test_the_weight_is_that_of_scipy(min_samples: int) -> None:
    csgraph = pytest.importorskip("scipy.sparse.csgraph")
    points = checks.gaussian(40, 3).astype(np.float64)
    weights = reachability(points, min_samples)
    np.fill_diagonal(weights, 0)
    expected = csgraph.minimum_spanning_tree(weights).data
    np.testing.assert_array_equal(spanning_tree(points, min_samples).weights, np.sort(expected))


def test_core_distances_count_the_point_itself() -> None:
    line = np.array([[0.0], [1.0], [3.0]])
    assert reachability(line, 1)[0].tolist() == [np.inf, 1.0, 3.0]
    assert reachability(line, 2)[0].tolist() == [np.inf, 1.0, 3.0]
    assert reachability(line, 3)[0].tolist() == [np.inf, 3.0, 3.0]


def test_of_edges_of_one_weight_the_first_is_taken() -> None:
    square = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert spanning_tree(square, 1).edges.tolist() == [[0, 2], [0, 3], [1, 2]]
    assert spanning_tree(np.zeros((4, 2)), 2).edges.tolist() == [[0, 1], [0, 2], [0, 3]]
