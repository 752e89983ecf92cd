"""Points in tables: text, Parquet and Arrow, and the cells that are refused by row and column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari.io import FileFormatError, _common, describe, read, text, write
from tonari.io.converting import convert
from tonari.io.found import write_found

SHAPES = [(1, 1), (1, 5), (7, 1), (33, 17)]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("names", [True, False])
def test_text_in_blocks(tmp_path: Path, suffix: str, names: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK_LINES", 4)
    for shape in SHAPES:
        values = np.random.default_rng(shape).standard_normal(shape)
        lines = ["\t,"[suffix == ".csv"].join(map(repr, row)) for row in values.tolist()]
        head = ["\t,"[suffix == ".csv"].join(f'"x {i}"' for i in range(shape[1]))] if names else []
        path = tmp_path / f"a{suffix}"
        path.write_text("\ufeff" + "\n".join([*head, *lines, "", ""]), encoding="utf-8")
        np.testing.assert_array_equal(read(path), values, strict=True)
        info = describe(path)
        assert (info.rows, info.columns, info.dtype, info.format) == (*shape, "float64", suffix[1:])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1,2\n\n3,x\n", "row 1 (line 4), column 1 ('b'): found 'x'"),
        ("1,2\n3,nan\n", "row 1 (line 2), column 1: found 'nan'"),
        ("1,2\n3,1e999\n", "row 1 (line 2), column 1: found '1e999'"),
        ("1,2\n,4\n", "row 1 (line 2), column 0: found ''"),
        ("1,2\n3\n", "row 1 (line 2): found 1 cells, expected 2"),
        ("1,2\n3\n4\n", "row 1 (line 2): found 1 cells, expected 2"),
        ("a,b\n1\n", "row 0 (line 2): found 1 cells, expected 2"),
        ("a,b\n", "without a row of numbers"),
        # A line with a number is not a line of names: else all later rows would have another number.
        ("NA,2\n3,4\n", "row 0 (line 1), column 0: found 'NA'"),
        ("1.5kg,2\n3,4\n", "row 0 (line 1), column 0: found '1.5kg'"),
        ("1,2,x\n3,4,5\n", "row 0 (line 1), column 2: found 'x'"),
        ('"1,5",2\n3,4\n', "row 0 (line 1), column 0: found '1,5'"),
        ("#1,2\n3,4\n", "row 0 (line 1), column 0: found '#1'"),
        ("\u22121,2\n3,4\n", "row 0 (line 1), column 0: found '\u22121'"),
        ("a\0b,2\n3,4\n", "line 1"),
        ("NA\n3\n", "row 0 (line 1), column 0: found 'NA'"),
        (",\n3,4\n", "row 0 (line 1), column 0: found ''"),
        ("1,2\n3,1_000\n", "row 1 (line 2), column 1: found '1_000'"),
        ("1,2\n3,\u0664\n", "row 1 (line 2), column 1: found '\u0664'"),
    ],
)
def test_cells_that_are_no_numbers(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(FileFormatError) as caught:
        read(path)
    assert said in str(caught.value)


def test_rows_are_counted_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK_LINES", 4)
    path = tmp_path / "a.csv"
    path.write_text("1,2\n" * 9 + "1,x\n")
    with pytest.raises(FileFormatError, match=r"row 9 \(line 10\), column 1"):
        read(path)


def test_blocks_and_pieces_of_other_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK_LINES", 4)
    monkeypatch.setattr(_common, "PIECE_BYTES", 7 * 8)  # pieces of 7 rows
    values = np.arange(33.0)[:, None]
    (tmp_path / "a.csv").write_text("\n".join(map(str, values.ravel())))
    convert(tmp_path / "a.csv", tmp_path / "a.npy", key=None, dtype=None, done=_done)
    np.testing.assert_array_equal(read(tmp_path / "a.npy"), values, strict=True)


def test_text_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2\n\xff\xfe,3\n")
    with pytest.raises(FileFormatError, match=r"not UTF-8 in line 2, .*Save it again as UTF-8"):
        read(path)


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
    monkeypatch.setattr(text, "BLOCK_LINES", 2)
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
    path.write_text("name,x,y\nann,1,2\nb,4,5,6\n")  # a cell too many is no matter of the columns
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


def _done(rows: int, total: int) -> None:
    assert 0 < rows <= total


@pytest.mark.parametrize(
    ("value", "given", "wanted", "rounded"),
    [
        (300, np.int32, np.uint8, True),
        (-1, np.int32, np.uint8, True),
        (-1, np.int8, np.uint8, True),  # wraps to 255, and back
        (200, np.uint8, np.int8, True),
        (0.5, np.float64, np.uint8, True),
        (np.nan, np.float64, np.int8, True),
        (1e39, np.float64, np.float32, True),
        (2.0**31, np.float64, np.int32, True),
        (0.1, np.float64, np.float32, False),
        (2**24 + 1, np.int32, np.float32, False),
    ],
)
def test_a_value_that_would_change_is_refused(
    tmp_path: Path, value: float, given: Any, wanted: Any, rounded: bool
) -> None:
    suffix = {np.uint8: ".u8bin", np.int8: ".i8bin", np.float32: ".fbin", np.int32: ".ibin"}[wanted]
    source, target, array = tmp_path / "a.npy", tmp_path / f"b{suffix}", np.ones((5, 3), given)
    array[3, 2] = value
    np.save(source, array)
    target.write_bytes(b"precious")
    with pytest.raises(ValueError, match=r"row 3, column 2: .* is not a value of"):
        convert(source, target, key=None, dtype=np.dtype(wanted) if rounded else None, done=_done)
    assert target.read_bytes() == b"precious"
    if not rounded:
        convert(source, target, key=None, dtype=np.dtype(wanted), done=_done)
        np.testing.assert_array_equal(read(target), array.astype(wanted), strict=True)
