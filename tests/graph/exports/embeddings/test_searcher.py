"""An export finds neighbours of new points in the index of the graph, as it was at the export."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.graph.exports.embeddings.searcher import searcher_of

POINTS = checks.gaussian(40, 3)


def test_rows_that_come_later_are_not_of_the_graph() -> None:
    graph, index = tonari.knn_graph(POINTS, 4), tonari.Index(POINTS)
    searcher = searcher_of(graph.lists, index)
    new = checks.gaussian(2, 3, 7)
    index.add(new)
    assert index.search(new, 1).indices.ravel().tolist() == [40, 41]
    assert searcher.n == 40
    assert (searcher.search(new, 4).indices < 40).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"points": POINTS[:-1]}, "index has 39 points and metric 'euclidean', the graph 40 and 'euclidean'"),
        ({"points": POINTS, "metric": "l1"}, r"metric 'l1', the graph 40 and 'euclidean': pass tonari.Index"),
        ({"points": POINTS, "weights": [1.0, 2.0, 3.0]}, "index has other weights than the graph"),
    ],
)
def test_an_index_of_something_else_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        searcher_of(tonari.knn_graph(POINTS, 4).lists, tonari.Index(**given))


def test_an_index_of_all_points_is_not_for_a_graph_with_filters() -> None:
    graph = tonari.knn_graph(POINTS, 4, batch=np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"was built with batch=, .*the index searches all points"):
        searcher_of(graph.lists, tonari.Index(POINTS))


def test_ids_that_are_no_rows_are_refused() -> None:
    index = tonari.Index(np.concatenate([POINTS[:1], POINTS]))
    index.remove(0)
    with pytest.raises(ValueError, match="its ids are no rows of the graph"):
        searcher_of(tonari.knn_graph(POINTS, 4).lists, index)
