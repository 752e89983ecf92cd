"""Text tables: blocks, cells, and row numbers in messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tonari.io import FileFormatError, describe, read, tuning

SHAPES = [(1, 1), (1, 5), (7, 1), (33, 17)]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("names", [True, False])
def test_text_in_blocks(tmp_path: Path, suffix: str, names: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "BLOCK_LINES", 4)
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
        ("\n \n", "without a line of numbers or names"),
        # A line with a number is not a header; otherwise all later rows would have another row number.
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
    monkeypatch.setattr(tuning, "BLOCK_LINES", 4)
    path = tmp_path / "a.csv"
    path.write_text("1,2\n" * 9 + "1,x\n")
    with pytest.raises(FileFormatError, match=r"row 9 \(line 10\), column 1"):
        read(path)


def test_text_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2\n\xff\xfe,3\n")
    with pytest.raises(FileFormatError, match=r"not UTF-8 in line 2, .*Save it again as UTF-8"):
        read(path)
