"""Neighbours as Arrow tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tonari.io import read
from tonari.io.neighbors.found import write_found


@pytest.mark.interop
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_neighbours_in_arrow(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow")
    indices, distances = np.arange(6, dtype=np.int32).reshape(3, 2), np.arange(6.0).reshape(3, 2)
    path = tmp_path / f"a{suffix}"
    write_found(path, indices, distances, {"metric": "l1"})
    np.testing.assert_array_equal(read(path, key="indices"), indices, strict=True)
    np.testing.assert_array_equal(read(path, key="distances"), distances, strict=True)
    if suffix == ".arrow":
        with pa.ipc.open_file(str(path)) as file:
            assert file.schema.metadata == {b"tonari": b'{"metric": "l1"}'}
