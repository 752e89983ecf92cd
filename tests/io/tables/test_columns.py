"""The columns of a table that are coordinates."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tonari.io import FileFormatError, describe, read, tuning
from tonari.io.converting import convert
from tonari.io.tables import text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (",x,y\n7,1,2\n3,3,4\n", "column 0 has no name"),
        ("x, ,y\n7,1,2\n3,3,4\n", "column 1 has no name"),
        ("Unnamed: 0,x\n7,1\n3,3\n", "column 0 is called 'Unnamed: 0'"),
        ("x,__index_level_0__\n7,1\n3,3\n", "column 1 is called '__index_level_0__'"),
        ("id,x\n0,7\n1,3\n2,3\n3,3\n4,3\n", "column 0 is called 'id': found row numbers"),
    ],
)
def test_row_numbers_are_no_coordinate(
    tmp_path: Path, content: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "BLOCK_LINES", 2)
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=re.escape(said)):
        read(path)
    target = tmp_path / "a.npy"
    with pytest.raises(FileFormatError, match=re.escape(said)):
        convert(path, target, key=None, dtype=None, done=_done)
    assert not target.exists()
    names = [name.strip() for name in content.split("\n", 1)[0].split(",")]
    other = [name for name in names if name in ("x", "y")]
    row_numbers = next(name for name in names if name not in other)
    values = np.loadtxt(content.split("\n")[1:-1], delimiter=",", ndmin=2)
    expected = values[:, [names.index(name) for name in other]]
    np.testing.assert_array_equal(read(path, drop=[row_numbers]), expected, strict=True)
    np.testing.assert_array_equal(read(path, columns=other), expected, strict=True)
    np.testing.assert_array_equal(read(path, columns=names), values, strict=True)


def test_columns_of_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,x,y,x\nann,1,2,3\n07,4,5,6\n")
    assert read(path, columns=["y"]).tolist() == [[2], [5]]
    assert describe(path, drop=["name", "y"]).columns == 2
    for arguments, said in [
        ({"columns": ["z"]}, "no column 'z'; its columns are name, x, y, x"),
        ({"columns": ["x"]}, "has 2 columns 'x'"),
        ({"columns": ["y", "y"]}, "each column once"),
        ({"columns": []}, "at least"),
        ({"columns": ["y"], "drop": ["x"]}, "exclude each other"),
    ]:
        with pytest.raises(ValueError, match=re.escape(said)):
            read(path, **arguments)
    with pytest.raises(TypeError, match="expected a list of names"):
        read(path, columns="y")
    with pytest.raises(FileFormatError, match=r"column 0 \('name'\): found 'ann'.*drop=\['name'\]"):
        read(path)
    path.write_text("name,x,y\nann,1,2\nb,4,5,6\n")  # a surplus cell is not an error of the columns
    with pytest.raises(FileFormatError, match=r"row 1 .*found 4 cells, expected 3"):
        read(path, columns=["y", "x"])
    path.write_text("name,x,y\nann,1,2\nb,4,5\n")
    assert read(path, columns=["y", "x"]).tolist() == [[2, 1], [5, 4]]
    assert text.column(path, "name").tolist() == ["ann", "b"]
    path.write_text("id,x\n7,1\n9,4\n")
    np.testing.assert_array_equal(text.column(path, "id"), np.array([7, 9]), strict=True)
    path.write_text("id,x\n007,1\n9,4\n")
    assert text.column(path, "id").tolist() == ["007", "9"]
    path.write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match="first line holds numbers, not names"):
        read(path, columns=["x"])
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"drop= is for tables"):
        read(tmp_path / "a.npy", drop=["x"])


def _done(rows: int, total: int) -> None:
    assert 0 < rows <= total
