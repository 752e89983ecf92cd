"""Tables as input, and results for other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io

N, D, K = 60, 5, 4


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_text_where_points_are_read() -> None:
    points = io.read("points.fbin")
    np.savetxt("points.tsv", points, delimiter="\t", fmt="%.17g")
    run("graph", "points.tsv", "-k", str(K), "-o", "a.npz")
    truth = tonari.knn_graph(points.astype(np.float64), K)
    np.testing.assert_array_equal(tonari.KNNGraph.load("a.npz").indices, truth.indices)
    assert as_json("info", "points.tsv")["rows"] == N


@pytest.mark.parametrize("command", [("graph", "points.fbin"), ("search", "points.fbin", "points.fbin")])
def test_results_for_other_programs(command: tuple[str, ...]) -> None:
    for name in ("a.npz", "a.hdf5", "a.csv"):
        run(*command, "-k", str(K), "-o", name)
    with np.load("a.npz") as truth, h5py.File("a.hdf5") as file:
        indices, distances = truth["indices"], truth["distances"]
        np.testing.assert_array_equal(file["neighbors"][:], indices, strict=True)
        np.testing.assert_array_equal(file["distances"][:], distances, strict=True)
    lines = Path("a.csv").read_text().splitlines()
    assert lines[0] == "from,to,distance"
    edges = np.loadtxt(lines[1:], delimiter=",")
    np.testing.assert_array_equal(edges[:, 0], np.repeat(np.arange(N), K))
    np.testing.assert_array_equal(edges[:, 1], indices.ravel())
    np.testing.assert_array_equal(edges[:, 2].astype(np.float32), distances.ravel())


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "said"),
    [
        (("graph", "absent.npy", "-k", "1", "-o", "g.npz"), 1, "FileNotFoundError", "absent.npy: no such file"),
        (("graph", "two.npz", "-k", "1", "-o", "g.npz"), 1, "ValueError", "Choose with --key: a, b"),
        (("graph", "int.npy", "-k", "1", "-o", "g.npz"), 1, "ValueError", "'tonari convert IN OUT --dtype float64'"),
        (("graph", "points.fbin", "-k", "x", "-o", "g.npz"), 2, "BadParameter", "'-k'"),
    ],
)
def test_errors_as_json_in_words_of_the_command_line(
    arguments: tuple[str, ...], code: int, kind: str, said: str
) -> None:
    np.savez("two.npz", a=np.ones((2, 2)), b=np.ones((2, 2)))
    np.save("int.npy", np.full((2, 2), 2**24 + 1))
    assert said in refused(*arguments, code=code)
    result = run(*arguments, "--json", code=code)
    told = json.loads(result.stderr)
    assert result.stdout == ""
    assert set(told) == {"error", "type"}
    assert told["type"] == kind
    assert said in told["error"]


def test_columns_and_names_of_rows_travel_through_the_commands() -> None:
    points = io.read("points.fbin").astype(np.float64)
    names = [f"n{i},{i}" for i in range(N)]
    head = ",".join(["index", "name", *"abcde"])
    rows = [
        f'{i},"{name}",' + ",".join(map(repr, row))
        for i, name, row in zip(range(N), names, points.tolist(), strict=True)
    ]
    Path("t.csv").write_text("\n".join([head, *rows]) + "\n")
    read = [{"path": "t.csv", "rows": N, "columns": D, "names": list("abcde")}]
    truth = tonari.knn_graph(points, K)
    assert "'name'): found" in refused("graph", "t.csv", "-k", str(K), "-o", "g.npz", "--drop", "index", code=1)
    assert "--drop 'index' leaves it out" in refused("convert", "t.csv", "p.npy", "--drop", "name", code=1)
    for chosen in (("--drop", "index,name"), ("--columns", "a,b,c,d,e")):
        assert as_json("graph", "t.csv", "-k", str(K), "-o", "g.npz", *chosen, "--force")["read"] == read
        np.testing.assert_array_equal(tonari.KNNGraph.load("g.npz").indices, truth.indices)
        assert as_json("recall", "g.npz", "t.csv", *chosen)["read"] == read
        assert as_json("info", "t.csv", *chosen)["columns"] == D
        assert as_json("plan", "t.csv", "-k", str(K), *chosen)["d"] == D
        assert as_json("convert", "t.csv", "p.npy", *chosen, "--force")["read"] == read
        np.testing.assert_array_equal(np.load("p.npy"), points)
    out = run("graph", "t.csv", "-k", str(K), "-o", "g.tsv", "--drop", "index", "--id", "name").stdout
    assert out.startswith(f"read t.csv, {N} x {D}: a, b, c, d, e\n")
    with open("g.tsv", newline="") as file:
        edges = list(csv.DictReader(file, delimiter="\t"))
    assert [edge["to"] for edge in edges] == [names[j] for j in truth.indices.ravel()]
    assert [edge["from"] for edge in edges] == [names[i] for i in range(N) for _ in range(K)]
    for output in ("s.csv", "s.CSV"):
        run("search", "t.csv", "points.fbin", "-k", "1", "-o", output, "--drop", "index", "--id", "name", "--force")
        with open(output, newline="") as file:
            assert [(one["from"], one["to"]) for one in csv.DictReader(file)] == [(str(i), names[i]) for i in range(N)]
    run("pairs", "t.csv", "--radius", "1.5", "-o", "p.npy", "--drop", "index", "--id", "name", "--force")
    found, near = np.load("p.npy"), tonari.pairs(points, 1.5)
    assert len(found) > 10
    assert found["left"].tolist() == [names[i] for i in near.left]
    assert found["right"].tolist() == [names[i] for i in near.right]
    for output in ("x.npz", "x.ibin", "x.hdf5"):
        said = refused("search", "t.csv", "t.csv", "-k", "1", "-o", output, "--id", "name", code=2)
        assert "holds row numbers, not names" in said
    assert "leave it out" in refused("graph", "t.csv", "-k", "1", "-o", "d/", "--id", "name", code=2)
    assert "is for tables" in refused("graph", "points.fbin", "-k", "1", "-o", "x.npz", "--columns", "a", code=1)


@pytest.mark.parametrize("extra", [(), ("-v",), ("--json",)])
def test_names_of_files_are_no_commands_to_the_terminal(extra: tuple[str, ...]) -> None:
    name = "a\x1b]0;title\x07\u202eb.npy"
    np.save(name, np.eye(4, dtype=np.float32))
    absent = run("graph", f"absent {name}", "-k", "1", "-o", "g.npz", *extra, code=1)
    done = run("graph", name, "-k", "1", "-o", f"{name}.npz", *extra)
    for text in (absent.stderr, done.stdout, done.stderr):
        assert not set(text) & set("\x1b\x07\u202e")
    assert r"\x1b]0;title\x07" in absent.stderr or r"\u001b]0;title\u0007" in absent.stderr
