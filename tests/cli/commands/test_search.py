"""tonari search into an .ibin file: the state after an interruption, and how the same command resumes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import ENVIRONMENT, as_json, refused, run
from tonari import io
from tonari.api import writing as verbs
from tonari.io.record import read_record
from tonari.streams import writing

N, M, D, K = 300, 50, 8, 5
SEARCH = ("search", "points.fbin", "queries.npy", "-k", str(K), "-o", "t.ibin", "--method", "exact")
KEPT = ["t.ibin.part", "t.ibin.part.json"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _written() -> list[str]:
    return sorted(name for name in os.listdir() if name.startswith("t.ibin"))


def _truth() -> Any:
    return tonari.search(io.read("queries.npy"), io.read("points.fbin"), K, method="exact")


def _interrupted() -> None:
    """Leave an interrupted run of SEARCH behind, with 20 queries done."""

    def source() -> Any:
        yield io.read("queries.npy")[:20]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        tonari.search_to_file(source(), "points.fbin", K, "t.ibin", rows=M, method="exact")
    assert _written() == KEPT


@pytest.mark.parametrize("name", ["queries.npy", "queries.fbin", "queries.fvecs", "queries.npz"])
def test_queries_stay_in_their_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    io.write(name, io.read("queries.npy"))
    given: list[Any] = []

    def record(queries: Any, *arguments: Any, **options: Any) -> Any:
        given.append(queries)
        return search_to_file(queries, *arguments, **options)

    search_to_file = tonari.search_to_file
    monkeypatch.setattr(verbs, "search_to_file", record)
    run(*(name if part == "queries.npy" else part for part in SEARCH))
    assert isinstance(given[0], np.memmap) == (name != "queries.npz")
    found = io.read_ground_truth("t.ibin")
    np.testing.assert_array_equal(found.indices, _truth().indices)
    np.testing.assert_array_equal(found.distances, _truth().distances)


def test_facts_of_a_stream() -> None:
    facts = as_json(*SEARCH)
    assert (facts["rows"], facts["points"], facts["k"], facts["bytes"]) == (M, N, K, 8 + 8 * M * K)
    assert _written() == ["t.ibin"]


def test_the_same_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted()
    searched: list[int] = []
    real = tonari.Index.search

    def search(index: Any, queries: Any, *arguments: Any, **options: Any) -> Any:
        searched.append(len(queries))
        return real(index, queries, *arguments, **options)

    monkeypatch.setattr(tonari.Index, "search", search)
    assert "resuming at query 20 of 50" in run(*SEARCH, "-v").stderr
    assert sum(searched) == M - 20
    np.testing.assert_array_equal(io.read_ground_truth("t.ibin").indices, _truth().indices)
    assert _written() == ["t.ibin"]


def test_another_search_is_refused_and_force_begins_anew() -> None:
    _interrupted()
    said = refused(*(str(K - 1) if part == str(K) else part for part in SEARCH), code=1)
    assert f"t.ibin.part: belongs to another search: k={K - 1}, not {K}. " in said
    assert "start over with resume=False (--force)" in said
    assert _written() == KEPT
    run(*(str(K - 1) if part == str(K) else part for part in SEARCH), "--force")
    assert io.read_ground_truth("t.ibin").indices.shape == (M, K - 1)
    assert _written() == ["t.ibin"]


def test_an_existing_file_is_refused_before_any_work(folder: Path) -> None:
    (folder / "t.ibin").write_bytes(b"precious")
    assert "t.ibin: exists already; --force" in refused(*SEARCH, code=1)
    assert (folder / "t.ibin").read_bytes() == b"precious"
    (folder / "nan.npy").unlink(missing_ok=True)
    np.save("nan.npy", np.full((3, D), np.nan, np.float32))
    broken = ("nan.npy" if part == "queries.npy" else part for part in SEARCH)
    assert "queries: row 0 has a value" in refused(*broken, "--force", code=1)
    assert (folder / "t.ibin").read_bytes() == b"precious"
    assert _written() == ["t.ibin"]


@pytest.mark.parametrize(
    ("more", "title", "proved"),
    [
        (("-o", "t.ibin"), "search_to_file", M),
        (("-o", "t.npz"), "search", M),
        (("-o", "t/"), "build_neighbors", M),
        (("-o", "n.npz", "--radius", "1"), "radius_search", None),
    ],
    ids=str,
)
def test_the_record_of_the_run_is_among_the_facts(more: tuple[str, ...], title: str, proved: int | None) -> None:
    record = read_record(as_json(*SEARCH[:5], *more)["record"])
    assert (record.title, record.rows) == (title, M)
    if proved is not None:
        assert sum(one.proved for one in (record, *record.parts)) == proved


def test_info_of_an_unfinished_file() -> None:
    _interrupted()
    facts = as_json("info", KEPT[0])
    assert (facts["format"], facts["rows"], facts["columns"]) == ("unfinished neighbours", M, K)
    assert (facts["extra"]["queries_done"], facts["extra"]["points"]) == (20, N)
    assert read_record(facts["extra"]["record"]).parts[0].proved == 20
    shown = run("info", KEPT[0]).stdout
    assert re.search(rf"^run:\nsearch_to_file: {M} rows, .*\n  search: 20 rows by exact, ", shown, re.MULTILINE)
    journal = json.loads(Path(KEPT[1]).read_text())
    Path(KEPT[1]).write_text(json.dumps({name: value for name, value in journal.items() if name != "record"}))
    assert "record" not in as_json("info", KEPT[0])["extra"]  # as earlier releases wrote it
    assert as_json(*SEARCH)["record"]["steps"][1]["rows"] == M - 20
    assert "other.part.json: does not exist" in refused("info", "other.part", code=1)


def test_outputs_that_cannot_be_written() -> None:
    for output, said in (("no/t.ibin", "no does not exist"), ("points.fbin/t.ibin", "is a file, not a directory")):
        assert said in refused(*SEARCH[:-3], output, code=1)


def test_progress_shows_queries_a_second() -> None:
    shown = run(*SEARCH, "--progress").stderr
    assert "neighbours" in shown
    assert "query/s]" in shown
    assert run(*SEARCH, "--no-progress", "--force").stderr == ""


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(folder: Path) -> None:
    # The slowest kernel: the search would take minutes if it were not stopped.
    io.write("many.fbin", np.abs(checks.gaussian(300_000, 16)))
    io.write("few.fbin", np.abs(checks.gaussian(10_000, 16)))
    arguments = ["search", "few.fbin", "many.fbin", "-k", "3", "-o", "t.ibin", "--metric", "chi2", "--method", "exact"]
    with subprocess.Popen(
        [sys.executable, "-m", "tonari", *arguments, "--threads", "1"],
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | {"TONARI_ISA": "generic"},
    ) as running:
        try:
            until = time.monotonic() + 60
            while not (folder / KEPT[1]).exists() or not json.loads((folder / KEPT[1]).read_text())["rows"]:
                assert time.monotonic() < until
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            sent = time.perf_counter()
            assert running.stderr is not None
            said = running.stderr.read().decode()
            code = running.wait(timeout=30)
            took = time.perf_counter() - sent
        finally:
            running.kill()
    assert code == 130
    assert took < 2.0, f"took {took:.1f} s to stop"
    done = json.loads((folder / KEPT[1]).read_text())["rows"]
    assert [line for line in said.splitlines() if line] == [
        f"tonari: {done:,} of 300,000 queries are in t.ibin.part; the same command resumes from there",
        "tonari: interrupted",
    ]
    assert _written() == KEPT


def test_ctrl_c_before_anything_is_done_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "_stream", interrupted)
    assert run(*SEARCH, code=130).stderr.strip() == "tonari: interrupted"
    assert _written() == []


def test_points_that_memory_does_not_hold_packed_are_told_of() -> None:
    rows = checks.gaussian(60_000, 32)
    io.write("points.fbin", rows)
    io.write("queries.npy", rows[:M])
    memory = tonari.plan(60_000, 1, 32, 1, threads=2).resident_memory - 200_000
    done = run(*SEARCH, "--threads", "2", "--memory", f"{memory}B")
    assert f"tonari: warning: memory={memory} bytes hold " in done.stderr
    assert done.stderr.count("warning") == 1
    assert (io.read_ground_truth("t.ibin").indices[:, 0] == np.arange(M)).all()


@pytest.mark.parametrize(
    "name", ["none.fvecs", "none.bvecs", "none.ivecs", "none.csv", "none.tsv", "blank.csv", "none.npy"]
)
def test_no_queries_have_empty_results(name: str) -> None:
    """A file without rows, in a format that stores the number of columns only in rows, has 0 bytes or empty lines."""
    if name == "none.npy":
        np.save(name, np.empty((0, D), np.float32))
    else:
        Path(name).write_text("\n  \n" if name == "blank.csv" else "")
    np.save("mask.npy", np.arange(N) < 9)
    search = ("search", "points.fbin", name, "--force", "-o")
    for more in ((), ("--where", "mask.npy")):
        assert f"read {name}, 0 x {D}" in run(*search, "t.npz", "-k", str(K), *more).stdout
        with np.load("t.npz") as found:
            assert found["indices"].shape == found["distances"].shape == (0, K)
        run(*search, "t.npz", "--radius", "1", *more)
        with np.load("t.npz") as found:
            assert [found[part].tolist() for part in ("indptr", "indices", "distances")] == [[0], [], []]
    run(*search, "t.ibin", "-k", str(K))
    assert io.read_ground_truth("t.ibin").indices.shape == (0, K)
    run(*search, "t.csv", "-k", str(K))
    assert Path("t.csv").read_text().split() == ["from,to,distance"]
    assert "has no rows, expected at least one" in refused(*search, "folder/", "-k", str(K), code=1)


def test_queries_without_a_line_have_no_names() -> None:
    Path("points.csv").write_text("name,x,y\n" + "".join(f"p{i},{i * i},{i}.5\n" for i in range(9)))
    Path("none.csv").touch()
    run("search", "points.csv", "none.csv", "-k", "2", "--id", "name", "-o", "t.csv")
    assert Path("t.csv").read_text().split() == ["from,to,distance"]


@pytest.mark.parametrize("name", ["none.fvecs", "none.csv"])
def test_points_without_rows_are_refused(name: str) -> None:
    Path(name).touch()
    for queries in ("queries.npy", name):
        assert f"{name}: found 0 bytes" in refused("search", name, queries, "-k", "1", "-o", "t.npz", code=1)
    assert "key='a' is for archives" in refused(
        "search", "points.fbin", name, "--queries-key", "a", "-k", "1", "-o", "t.npz", code=1
    )
    Path("short.fvecs").write_bytes(b"\1\0\0")
    assert "short.fvecs: found 3 bytes" in refused(
        "search", "points.fbin", "short.fvecs", "-k", "1", "-o", "t.npz", code=1
    )
