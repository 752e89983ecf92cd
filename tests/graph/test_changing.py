"""Methods that change the points of a graph: their arguments, and the arrays that they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

K = 5
POINTS = checks.gaussian(240, 6)


def assert_is_graph_of(graph: tonari.KNNGraph, points: Any) -> None:
    truth = brute(points, points, K, self_ids=np.arange(len(points)))
    np.testing.assert_array_equal(graph.to_numpy().indices, truth.indices)
    np.testing.assert_array_equal(graph.to_numpy().distances, truth.distances)


@pytest.mark.parametrize(
    ("given", "message"), [({"seed": -1}, "seed=-1"), ({"memory": "1"}, "memory"), ({"device": "gpu"}, "device='gpu'")]
)
def test_arguments_are_used_or_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.knn_graph(POINTS, K).remove(POINTS, [3], **given)


def test_progress_counts_the_rows_that_are_searched() -> None:
    points, told = POINTS, list[tuple[int, int]]()
    graph = tonari.knn_graph(points, K)
    graph.remove(points, [17], progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (graph.occurrence()[17],) * 2


@needs_torch
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])
def test_graphs_of_tensors(device: str) -> None:
    points = torch.from_numpy(POINTS).to(device)
    graph = tonari.knn_graph(points, K)
    rest = np.delete(POINTS, [3, 9], axis=0)
    made = graph.remove(points, [3, 9])
    assert isinstance(made.indices, torch.Tensor)
    assert made.indices.device == points.device
    assert_is_graph_of(made, rest)
    moved = POINTS.copy()
    moved[[9, 3]] = moved[:2] + 1
    made = graph.replace(points, torch.tensor([9, 3]), points[:2] + 1)
    assert_is_graph_of(made, moved)
