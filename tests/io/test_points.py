"""Points in a file of any format: columns are chosen by name, and refused in files without names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari import io
from tonari.io.points import describe, is_table, read_column, read_points
from tonari.io.tables.columns import Choice


def read(path: Path, choice: Choice = Choice(), most: float = math.inf) -> Any:  # noqa: B008
    return read_points(path, mmap=True, key=None, most=most, choice=choice)


@pytest.fixture(params=["t.tsv", "t.parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make a column of names, and two of coordinates."""
    path = tmp_path / request.param
    if path.suffix == ".tsv":
        lines = [("id", "x", "y"), ("a", "1", "2"), ("b", "3", "4")]
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
        return path
    pyarrow = pytest.importorskip("pyarrow")
    made = pyarrow.table({"id": ["a", "b"], "x": [1.0, 3.0], "y": [2.0, 4.0]})
    import pyarrow.parquet as parquet

    parquet.write_table(made, path)
    return path


def test_columns_are_chosen_by_name(table: Path) -> None:
    assert is_table(table)
    points, names = read(table, Choice(drop=("id",)))
    assert (points.tolist(), list(names)) == ([[1, 2], [3, 4]], ["x", "y"])
    points, names = read(table, Choice(columns=("y",)))
    assert (points.tolist(), list(names)) == ([[2], [4]], ["y"])
    assert read_column(table, "id").tolist() == ["a", "b"]
    info = describe(table, key=None, choice=Choice(drop=("id",)))
    assert (info.rows, info.columns) == (2, 2)


def test_values_that_take_too_much_memory_are_not_read(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.io._common.FREE_BYTES", 0)
    with pytest.raises(io.FileFormatError, match="its values take"):
        read(table, Choice(drop=("id",)), most=1e-3)


def test_a_file_without_names_has_no_columns_to_choose(tmp_path: Path) -> None:
    path = tmp_path / "points.npy"
    np.save(path, np.zeros((3, 2), np.float32))
    points, names = read(path)
    assert (points.shape, names) == ((3, 2), None)
    assert not is_table(path)
    for choice, what in ((Choice(columns=("x",)), "columns="), (Choice(drop=("x",)), "drop=")):
        with pytest.raises(ValueError, match=f"{what} is for tables"):
            read(path, choice)
        with pytest.raises(ValueError, match=f"{what} is for tables"):
            describe(path, key=None, choice=choice)
    with pytest.raises(ValueError, match="is for tables"):
        read_column(path, "x")
