"""A graph as an Arrow table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import consumers


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
