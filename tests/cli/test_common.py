"""Shared parts of the commands: outputs, errors in one line, and exit statuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.helpers import checks
from tests.helpers.command_line import refused, run
from tonari import io
from tonari.cli import main
from tonari.graph.knn_graph import KNNGraph

N, M, D, K = 300, 20, 8, 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_existing_output_is_refused_before_any_work(folder: Path) -> None:
    (folder / "old.npz").write_bytes(b"precious")
    # The points do not exist; if they were read first, the message would say so.
    assert "old.npz: exists already; --force" in refused("graph", "absent.fbin", "-k", "1", "-o", "old.npz", code=1)
    assert "old.npz: exists already" in refused("search", "absent.fbin", "no.npy", "-k", "1", "-o", "old.npz", code=1)
    assert (folder / "old.npz").read_bytes() == b"precious"
    run("graph", "points.fbin", "-k", "1", "-o", "old.npz", "--force")
    assert KNNGraph.load("old.npz").n == N


def test_a_failed_search_leaves_a_forced_output_as_it_was(folder: Path) -> None:
    (folder / "old.npz").write_bytes(b"precious")
    refused("graph", "points.fbin", "-k", str(N), "-o", "old.npz", "--force", code=1)
    assert (folder / "old.npz").read_bytes() == b"precious"


@pytest.mark.parametrize("command", ["graph", "search"])
def test_an_input_is_never_the_output(folder: Path, command: str) -> None:
    np.savez("points.npz", io.read("points.fbin"))
    before = (folder / "points.npz").read_bytes()
    (folder / "link.npz").symlink_to("points.npz")
    inputs = ["points.npz"] if command == "graph" else ["points.fbin", "points.npz"]
    for output in ("points.npz", "link.npz"):
        line = refused(command, *inputs, "-k", "1", "-o", output, "--force", code=2)
        assert f"{output} is also an input; name another file" in line
    assert (folder / "points.npz").read_bytes() == before


def test_outputs_that_cannot_be_written(folder: Path) -> None:
    for output, code, said in (
        ("g.txt", 2, "expected .arrow, .csv, .h5, .hdf5, .npz"),
        ("g.ibin", 2, "expected .arrow, .csv, .h5, .hdf5, .npz"),
        ("no/g.npz", 1, "no does not exist"),
        ("points.fbin/g.npz", 1, "is a file, not a directory"),
    ):
        assert said in refused("graph", "absent.fbin", "-k", "1", "-o", output, code=code)
    assert "is a directory" in refused("merge", *("absent",) * 4, "-o", ".", code=1)
    assert ".hdf5, .ibin, .npz, .parquet" in refused("search", "a.fbin", "b.fbin", "-k", "1", "-o", "t.fbin", code=2)


def test_bad_data_is_one_line_and_exit_code_1(folder: Path) -> None:
    bad = checks.gaussian(9, 3)
    bad[4, 1] = np.nan
    np.save("nan.npy", bad)
    np.save("narrow.npy", bad[:2])
    (folder / "cut.fbin").write_bytes((folder / "points.fbin").read_bytes()[:1000])
    np.save("whole.npy", np.full((9, 2), 2**25))
    for points, said in (
        ("nan.npy", "row 4"),
        ("cut.fbin", "found 1000 bytes"),
        ("whole.npy", "row 0 has the int64 number 33554432"),
        ("absent.fbin", "absent.fbin: no such file"),
        ("points.txt", "unknown suffix '.txt'"),
    ):
        assert said in refused("graph", points, "-k", "1", "-o", "g.npz", code=1)
    assert f"the largest k is {N - 1}" in refused("graph", "points.fbin", "-k", str(N), "-o", "g.npz", code=1)
    narrow = ("search", "points.fbin", "narrow.npy", "-k", "1", "-o", "t.npz")
    assert "same number of columns" in refused(*narrow, code=1)
    assert not [path for path in folder.iterdir() if "g.npz" in path.name or "t.npz" in path.name]


def test_wrong_usage_is_one_line_and_exit_code_2(folder: Path) -> None:
    for arguments, said in (
        (("--nonsense",), "--nonsense"),
        (("nonsense",), "No such command 'nonsense'"),
        (("graph",), "Missing argument 'POINTS...'"),
        (("graph", "points.fbin", "-o", "g.npz"), "'-k'"),
        (("graph", "points.fbin", "-k", "1"), "'-o'"),
        (("graph", "points.fbin", "-k", "0", "-o", "g.npz"), "'-k'"),
        (("graph", "points.fbin", "-k", "1", "-o", "g.npz", "--metric", "cosin"), "'cosine'"),
        (("graph", "points.fbin", "-k", "1", "-o", "g.npz", "--threads", "0"), "'--threads'"),
        (("recall", "g.npz", "points.fbin", "--sample", "0"), "'--sample'"),
        (("plan", "points.fbin", "-k", "1", "--queries", "0"), "'--queries'"),
    ):
        line = refused(*arguments, code=2)
        assert said in line
        assert "--help')" in line


def test_the_traceback_is_kept_for_those_who_ask(folder: Path) -> None:
    result = run("graph", "absent.fbin", "-k", "1", "-o", "g.npz", "-vv", code=1)
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("tonari: error: absent.fbin: no such file\n")


def test_a_defect_is_not_dressed_up_as_bad_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(io, "describe", broken)
    result = CliRunner().invoke(main, ["info", "points.fbin"])
    assert isinstance(result.exception, ZeroDivisionError)
