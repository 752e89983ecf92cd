"""Lists of neighbours: valid ones, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.graphs import (
    SPOILT,
    N,
    nan_for_self,
    spoilt,
    true_graph,
)
from tonari.graph import tuning
from tonari.graph.knn_graph import KNNGraph

if HAS_TORCH:
    import torch


@pytest.mark.parametrize("kind", ["numpy", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("what", SPOILT)
def test_rows_that_are_no_lists_are_refused(what: str, include_self: bool, kind: str) -> None:
    change, metric, message = SPOILT[what]
    lists = spoilt(change, metric, include_self)
    lists = tuple(map(torch.from_numpy, lists)) if kind == "torch" else lists
    with pytest.raises(ValueError, match=message):
        KNNGraph(*lists, metric, "exact", include_self)


@pytest.mark.parametrize("what", SPOILT)
@pytest.mark.parametrize("at_once", [1, 12, 20])
def test_rows_are_looked_at_part_by_part(what: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHECKED_AT_ONCE", at_once)
    change, metric, message = SPOILT[what]
    with pytest.raises(ValueError, match=message):
        KNNGraph(*spoilt(change, metric), metric, "exact")
    assert true_graph().n == N


def test_a_distance_to_self_that_is_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="row 4 has a distance that is NaN"):
        KNNGraph(*spoilt(nan_for_self, include_self=True), "euclidean", "exact", True)


def test_lists_that_may_be_are_taken() -> None:
    """Missing entries at the end, ties, float32 overflow, and a point less similar to itself than to another."""
    far = np.array([[1.0, np.inf], [1.0, np.inf], [np.inf, np.inf]], np.float32)
    graph = KNNGraph(np.array([[1, 2], [0, 2], [0, 1]], np.int32), far, "sqeuclidean", "exact")
    assert graph.n == 3
    nowhere = np.array([[5.0, -np.inf], [5.0, 2.0], [-np.inf, -np.inf]])
    assert KNNGraph(np.array([[1, -1], [0, 2], [-1, -1]]), nowhere, "inner_product", "exact").k == 2
    points = np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 1.0]], np.float32)
    made = tonari.knn_graph(points, 3, metric="inner_product", include_self=True)
    assert made.distances[0].tolist() == [1.0, 9.0, 0.0]
