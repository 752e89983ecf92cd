"""openTSNE: as many neighbours as the perplexity needs, never the point itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import consumers

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("include_self", [False, True])
def test_neighbours_are_those_of_the_perplexity_without_self(include_self: bool) -> None:
    consumers.consumer("openTSNE")
    points, _ = consumers.clusters(100)
    graph = tonari.knn_graph(points, 40 + include_self, include_self=include_self)
    given = graph.to_opentsne(10.5)
    truth = tonari.knn_graph(points, 31)
    np.testing.assert_array_equal(given.indices, truth.indices)
    np.testing.assert_array_equal(given.distances, truth.distances)
    assert given.k == 31
    assert consumers.hostile(59)[1].to_opentsne(30).k == 59  # all other points


def test_affinities_are_opentsnes_own() -> None:
    affinity: Any = consumers.consumer("openTSNE").affinity
    points, _ = consumers.clusters(copies=1)  # which of several copies is listed is undefined
    knn_index = tonari.knn_graph(points, 30).to_opentsne(10)
    ours = affinity.PerplexityBasedNN(knn_index=knn_index, perplexity=10).P
    own = affinity.PerplexityBasedNN(points, perplexity=10, method="exact").P
    assert abs(ours - own).max() < 1e-5 * own.max()


def test_refuses_what_would_go_wrong_in_silence() -> None:
    consumers.consumer("openTSNE")
    points, graph = consumers.hostile(20)
    with pytest.raises(ValueError, match=r"perplexity=8: .* = 24 neighbours .* has 20; build it with k=24 or more"):
        graph.to_opentsne(8)
    with pytest.raises(ValueError, match="row 7 has 2 of its 18 neighbours missing"):
        consumers.with_missing(graph, count=4).to_opentsne(6)
    assert consumers.with_missing(graph).to_opentsne(6).k == 18  # the missing ones are not requested
    with pytest.raises(ValueError, match="not squared"):
        tonari.knn_graph(points, 18, metric="sqeuclidean").to_opentsne(6)
    for bad in (0, "6", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="expected a number of at least 1"):
            graph.to_opentsne(bad)  # type: ignore[arg-type]
