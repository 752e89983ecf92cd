"""Points that commands read: columns of tables, names of rows, and the printed description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import tonari
from tests.helpers.command_line import as_json, refused
from tests.helpers.npz import arrays_of
from tests.helpers.sparse_rows import same_bits, words
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


def test_sparse_points_have_the_answers_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    monkeypatch.chdir(tmp_path)
    rows = sparse.csr_array(words(90, 20).astype(np.float32))
    sparse.save_npz("rows.npz", rows)
    sparse.save_npz("some.npz", rows[:9])
    mask = np.arange(90) % 2 == 0
    np.save("mask.npy", mask)
    cosine = ("--metric", "cosine")
    facts = as_json("search", "rows.npz", "some.npz", "-k", "4", "--where", "mask.npy", *cosine, "-o", "near.npz")
    assert (facts["rows"], facts["points"], facts["read"][0]["columns"]) == (9, 90, 20)
    near = arrays_of("near.npz")
    same_bits(tonari.search(rows[:9], rows, 4, where=mask, metric="cosine"), (near["distances"], near["indices"]))
    as_json("search", "rows.npz", "some.npz", "--min-similarity", "0.4", *cosine, "-o", "within.npz")
    within = arrays_of("within.npz")
    found = tonari.radius_search(rows[:9], rows, min_similarity=0.4, metric="cosine")
    same_bits(found, (within["indptr"], within["indices"], within["distances"]))
    as_json("graph", "rows.npz", "-k", "3", "--exclude-within", "2", "-o", "graph.npz")
    graph = tonari.KNNGraph.load("graph.npz")
    assert np.array_equal(graph.indices, tonari.knn_graph(rows, 3, exclude_within=2).indices)
    assert as_json("pairs", "rows.npz", "--radius", "0.8", "-o", "pairs.npy")["pairs"] == len(
        tonari.pairs(rows, 0.8).left
    )
    assert as_json("info", "rows.npz")["format"] == "sparse npz"
    assert "chunk by chunk" in refused("search", "rows.npz", "some.npz", "-k", "3", "-o", "near.ibin", code=1)
    assert "is a sparse matrix" in refused("graph", "rows.npz", "-k", "3", "-o", "graph/", code=1)
