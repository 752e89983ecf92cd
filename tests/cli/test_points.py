"""Points that commands read: columns of tables, names of rows, and the printed description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from tonari.cli._points import Inputs, check_named

CONTEXT = click.Context(click.Command("search"))


@pytest.fixture(autouse=True)
def _in_a_command() -> Any:
    with CONTEXT:
        yield


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\na,1,2\nb,3,4\n")
    return path


def test_names_of_rows_are_no_coordinate(table: Path) -> None:
    read = Inputs(None, None, ids="id")
    assert read.read(table, None).tolist() == [[1, 2], [3, 4]]
    names = read.names_of_rows(table)
    assert names is not None
    assert names.tolist() == ["a", "b"]
    assert read.text == f"read {table}, 2 x 2: x, y\n"
    assert Inputs(["y"], None, ids="id").read(table, None).tolist() == [[2], [4]]
    assert Inputs(None, ["id", "y"]).read(table, None).tolist() == [[1], [3]]
    assert Inputs(["x"], None).names_of_rows(table) is None


def test_a_column_is_a_name_or_a_coordinate() -> None:
    with pytest.raises(click.UsageError, match="'x' names the rows by --id, and is a coordinate by --columns"):
        Inputs(["x", "y"], None, ids="x")
    with pytest.raises(click.UsageError):
        Inputs(["x"], ["y"])


def test_columns_of_a_file_that_has_none_are_refused(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "points.fbin"
    with pytest.raises(ValueError, match="columns= is for tables"):
        Inputs(["x"], None).check([other])
    Inputs(["x"], None).check([other, table])  # one of the files is a table
    Inputs(None, None).check([other])


def test_names_need_an_output_that_has_a_place_for_them() -> None:
    cases: list[Any] = [("o.csv", True), ("o.PARQUET", True), ("o.ibin", False), ("o.npz", False)]
    for name, good in cases:
        check_named(CONTEXT, Path(name), Inputs(None, None))
        if good:
            check_named(CONTEXT, Path(name), Inputs(None, None, "id"))
            return
        with pytest.raises(click.BadParameter, match=r"holds row numbers, not names; name one of \.csv"):
            check_named(CONTEXT, Path(name), Inputs(None, None, "id"))
