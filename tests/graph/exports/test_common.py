"""Lists with and without the point itself, and graphs that readers would misinterpret."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.graphs import K, N, true_graph
from tonari.core.results.neighbors import Neighbors
from tonari.graph.exports.common import refuse_missing, refuse_similarities, refuse_squares, with_self
from tonari.metrics import METRICS


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("include_self", [False, True])
def test_self_is_added_in_front_or_taken_out(include_self: bool, wanted: bool) -> None:
    graph = true_graph(include_self=include_self)
    distances, indices = with_self(graph.lists, wanted)
    assert indices.shape == (N, K + wanted - include_self)
    assert indices.dtype == graph.indices.dtype
    assert distances.dtype == graph.distances.dtype
    if wanted:
        assert indices[:, 0].tolist() == list(range(N))
        assert not distances[:, 0].any()
    np.testing.assert_array_equal(indices[:, int(wanted) :], graph.indices[:, int(include_self) :])
    np.testing.assert_array_equal(distances[:, int(wanted) :], graph.distances[:, int(include_self) :])


def test_similarities_to_self_are_not_known() -> None:
    graph = true_graph(metric="inner_product")
    with pytest.raises(ValueError, match="include_self=True: a inner_product graph without self does not store"):
        with_self(graph.lists, True)
    assert with_self(graph.lists, False).indices.shape == (N, K)
    assert with_self(true_graph(metric="inner_product", include_self=True).lists, True).indices.shape == (N, K)


@pytest.mark.parametrize("metric", METRICS)
def test_readers_of_distances_refuse_what_is_none(metric: str) -> None:
    points = np.abs(np.random.default_rng(0).standard_normal((N, 3))).astype(np.float32)
    lists = true_graph(points, metric=metric).lists
    if METRICS[metric].descending:
        with pytest.raises(ValueError, match=f"^SOMEBODY reads distances, and this graph has similarities .{metric}"):
            refuse_similarities(lists, "SOMEBODY")
    else:
        refuse_similarities(lists, "SOMEBODY")
    if metric == "sqeuclidean":
        with pytest.raises(ValueError, match=r"^SOMEBODY reads distances that are not squared"):
            refuse_squares(lists, "SOMEBODY")
    else:
        refuse_squares(lists, "SOMEBODY")


def test_lists_that_are_shorter_are_named() -> None:
    indices = np.array([[1, 2], [0, 2], [-1, -1], [0, -1]])
    refuse_missing(Neighbors(np.zeros((2, 2)), indices[:2]), "SOMEBODY")
    with pytest.raises(ValueError, match="row 2 has 2 of its 2 neighbours missing"):
        refuse_missing(Neighbors(np.zeros((4, 2)), indices), "SOMEBODY")
