"""Edges for PyTorch Geometric, igraph, networkx and Arrow: all of them, in the stated direction, without self."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import tonari
from tests.helpers import consumers
from tests.helpers.devices import needs_torch


def _edges(graph: tonari.KNNGraph) -> dict[tuple[int, int], float]:
    """The edges of a graph without self, by point and neighbour."""
    first = int(graph.include_self)
    return {
        (i, int(j)): float(d)
        for i in range(graph.n)
        for j, d in zip(graph.indices[i, first:], graph.distances[i, first:], strict=True)
        if j >= 0
    }


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
    assert found == _edges(graph)
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


@pytest.mark.interop
@pytest.mark.parametrize("symmetric", [None, "union", "mutual"])
@pytest.mark.parametrize("library", ["igraph", "networkx"])
def test_graphs_have_every_edge_once(library: str, symmetric: Any) -> None:
    consumers.consumer(library)
    graph = consumers.with_missing(consumers.hostile(6, include_self=True)[1])
    made: Any = getattr(graph, f"to_{library}")(symmetric=symmetric)
    if library == "igraph":
        assert (made.vcount(), made.is_directed()) == (graph.n, symmetric is None)
        assert made.es.attributes() == ["distance"]
        found = {edge.tuple: edge["distance"] for edge in made.es}
        assert len(found) == made.ecount()
    else:
        assert (list(made), made.is_directed()) == (list(range(graph.n)), symmetric is None)
        found = {(i, j): values["distance"] for i, j, values in made.edges(data=True)}
        assert all(list(values) == ["distance"] for *_, values in made.edges(data=True))
    edges = _edges(graph)
    if symmetric == "union":
        edges |= {(j, i): d for (i, j), d in edges.items()}
    elif symmetric == "mutual":
        edges = {(i, j): d for (i, j), d in edges.items() if (j, i) in edges}
    if symmetric is not None:
        edges = {(i, j): d for (i, j), d in edges.items() if i < j}
        found = {(min(pair), max(pair)): d for pair, d in found.items()}
    assert found == edges


@pytest.mark.interop
def test_leiden_finds_the_clusters() -> None:
    leidenalg: Any = consumers.consumer("leidenalg")
    from sklearn.metrics import adjusted_rand_score

    points, labels = consumers.clusters(apart=4)
    made = tonari.knn_graph(points, 15).to_igraph(symmetric="union")
    found = leidenalg.find_partition(made, leidenalg.CPMVertexPartition, resolution_parameter=0.02, seed=0).membership
    assert adjusted_rand_score(labels, found) > 0.9


@pytest.mark.interop
def test_a_parquet_file_brings_the_graph_back(tmp_path: Path) -> None:
    pyarrow: Any = consumers.consumer("pyarrow")
    parquet: Any = consumers.consumer("pyarrow.parquet")
    graph = consumers.with_missing(consumers.hostile(6, include_self=True)[1])
    table = graph.to_arrow()
    assert table.schema.field("indices").type == pyarrow.list_(pyarrow.int32(), 6)
    assert table.schema.field("distances").type == pyarrow.list_(pyarrow.float32(), 6)
    address = table["indices"].chunk(0).flatten().buffers()[1].address
    assert address == graph.indices.ctypes.data  # nothing is copied
    parquet.write_table(table, tmp_path / "graph.parquet")
    read = parquet.read_table(tmp_path / "graph.parquet")
    about = json.loads(read.schema.metadata[b"tonari"])
    assert about == {"metric": "euclidean", "method": "exact", "include_self": True, "seed": None}
    parts = [read[name].combine_chunks().flatten().to_numpy().reshape(-1, 6) for name in ("indices", "distances")]
    again = tonari.KNNGraph.from_arrays(*parts, metric=about["metric"], include_self=about["include_self"])
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.distances, graph.distances)
