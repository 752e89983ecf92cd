"""Components of edges that arrive in blocks equal those of the whole graph, in the order of their first nodes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tonari.estimators.dbscan import Components


@pytest.mark.parametrize("edges", [0, 20, 60, 400])
@pytest.mark.parametrize("block", [1, 7, 1_000])
def test_components_are_those_of_the_whole_graph(edges: int, block: int) -> None:
    rng = np.random.default_rng(edges)
    left, right = rng.integers(80, size=(2, edges))
    components = Components(80)
    for begin in range(0, edges, block):
        components.join(left[begin : begin + block], right[begin : begin + block])
    _, whole = connected_components(coo_array((np.ones(edges), (left, right)), shape=(80, 80)), directed=False)
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(components.of, np.argsort(np.argsort(first))[place])


def test_an_edge_may_come_many_times() -> None:
    components = Components(3)
    components.join(np.full(256, 2), np.full(256, 1))
    assert components.of.tolist() == [0, 1, 1]
