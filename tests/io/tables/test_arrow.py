"""Arrow and Parquet tables: columns, lists, and cells that are not numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari.io import FileFormatError, describe, read, write
from tonari.io.neighbors.found import write_found

SHAPES = [(1, 1), (1, 5), (7, 1), (33, 17)]


@pytest.mark.interop
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_of_arrow(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / f"a{suffix}"
    _save(pa.table({"name": list("abcdefg"), "x": [1.0] * 7, "y": [2.0] * 7, "__index_level_0__": [3] * 7}), path)
    with pytest.raises(FileFormatError, match="__index_level_0__"):
        read(path, drop=["name"])
    assert read(path, columns=["y", "x"])[0].tolist() == [2, 1]
    assert read(path, drop=["name", "__index_level_0__"])[0].tolist() == [1, 2]
    _save(pa.table({"id": range(7), "x": [1.0] * 7}), path)
    with pytest.raises(FileFormatError, match="'id': found row numbers"):
        read(path)
    assert read(path, drop=["id"]).tolist() == [[1.0]] * 7
    indices, names = np.array([[1], [-1]], np.int32), np.array(["a", "b"])
    write_found(path, indices, indices.astype(float), {}, names=(names, names))
    with pa.memory_map(str(path)) as source:
        found = (
            pytest.importorskip("pyarrow.parquet").read_table(source)
            if suffix == ".parquet"
            else (pa.ipc.open_file(source).read_all())
        )
        assert (found["id"].to_pylist(), found["ids"].to_pylist()) == (["a", "b"], [["b"], [None]])


@pytest.mark.interop
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_lists_and_columns_of_arrow(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow")
    for shape in SHAPES:
        values = np.random.default_rng(shape).standard_normal(shape).astype(np.float32)
        write(tmp_path / f"a{suffix}", values[::-1])
        np.testing.assert_array_equal(read(tmp_path / f"a{suffix}"), values[::-1], strict=True)
        columns = pa.table({f"x{i}": values[:, i] for i in range(shape[1])})
        ragged = pa.table({"id": ["s"] * len(values), "v": pa.array(values.tolist(), pa.list_(pa.float32()))})
        for table in (columns, ragged):
            _save(table, tmp_path / f"b{suffix}")
            np.testing.assert_array_equal(read(tmp_path / f"b{suffix}"), values, strict=True)
    assert describe(tmp_path / f"b{suffix}").extra == {"columns": "id, v", "key": "v"}


def _save(table: Any, path: Path) -> None:
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=5)
        return
    with pytest.importorskip("pyarrow").ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


@pytest.mark.interop
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_cells_of_arrow_that_are_no_numbers(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow")
    path, more = tmp_path / f"a{suffix}", [1.0] * 6
    for columns, said in [
        ({"x": [*more, None], "y": [*more, 1.0]}, "row 6, column 'x': found null"),
        ({"x": [*more, 1.0], "y": [*more, float("nan")]}, "row 6, column 1 ('y'): found nan"),
        ({"x": [*more, 1.0], "y": ["s"] * 7}, "column 'y' holds string"),
        ({"v": [[1.0, 2.0]] * 6 + [[1.0]]}, "row 6, column 'v': found 1 values, not 2"),
        ({"v": [[1.0, 2.0]] * 6 + [[1.0, None]]}, "row 6, column 1: found null"),
    ]:
        _save(pa.table(columns), path)
        with pytest.raises(FileFormatError) as caught:
            read(path)
        assert said in str(caught.value)
    _save(pa.table({"u": [[1.0]], "v": [[2.0]]}), path)
    with pytest.raises(ValueError, match="found 2 columns of lists"):
        read(path)
    assert read(path, key="v").tolist() == [[2.0]]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FileFormatError):
        read(path)
