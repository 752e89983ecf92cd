"""Edges for PyTorch Geometric."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import tonari
from tests.helpers import consumers
from tests.helpers.devices import needs_torch
from tests.helpers.graphs import edges_of


@needs_torch
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_edge_index(include_self: bool, flow: Literal["source_to_target", "target_to_source"]) -> None:
    import torch

    graph = consumers.with_missing(consumers.hostile(6, include_self)[1])
    edge_index, edge_attr = graph.to_edge_index(flow=flow)
    assert edge_index.dtype == torch.int64
    assert edge_index.is_contiguous()
    neighbours, centres = edge_index if flow == "source_to_target" else edge_index.flip(0)
    found = dict(zip(zip(centres.tolist(), neighbours.tolist(), strict=True), edge_attr.tolist(), strict=True))
    assert found == edges_of(graph)
    assert edge_index.shape[1] == len(found)
    assert (centres.diff() >= 0).all()


@needs_torch
def test_edge_index_of_tensors_and_of_another_flow() -> None:
    import torch

    graph = consumers.hostile()[1]
    tensors = tonari.KNNGraph(
        torch.from_numpy(graph.indices), torch.from_numpy(graph.distances), graph.metric, graph.method
    )
    assert torch.equal(tensors.to_edge_index()[0], graph.to_edge_index()[0])
    with pytest.raises(ValueError, match="flow='up': expected 'source_to_target' or 'target_to_source'"):
        graph.to_edge_index(flow="up")  # type: ignore[arg-type]


@pytest.mark.interop
@needs_torch
def test_messages_go_from_neighbours_to_points() -> None:
    nn: Any = consumers.consumer("torch_geometric.nn")
    import torch

    points, graph = consumers.hostile()
    means = nn.SimpleConv(aggr="mean")(torch.from_numpy(points), graph.to_edge_index()[0])
    np.testing.assert_allclose(means.numpy(), points[graph.indices].mean(axis=1), rtol=1e-5)
