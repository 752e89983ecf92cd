"""The plain definition, compared with results by hand."""

from __future__ import annotations

import numpy as np

from tonari.user_metrics.reference import brute, brute_within

TABLE = np.array([[5.0, 1.0, 1.0, np.inf], [0.0, -2.0, 7.0, 0.0]])


def test_the_nearest_are_in_order_of_distance_and_index() -> None:
    found = brute(TABLE, 3)
    assert found.indices.tolist() == [[1, 2, 0], [1, 0, 3]]
    assert found.distances.tolist() == [[1.0, 1.0, 5.0], [-2.0, 0.0, 0.0]]
    assert brute(TABLE, 2, own=True).indices.tolist() == [[1, 2], [0, 3]]


def test_those_within_a_limit() -> None:
    found = brute_within(TABLE, np.array([1.0, -2.0]))
    assert (found.indptr.tolist(), found.indices.tolist()) == ([0, 2, 3], [1, 2, 1])
    assert brute_within(TABLE, np.array([np.inf, -2.0]), own=True).indptr.tolist() == [0, 3, 3]
