"""Graphs in a directory on the command line: output before and after, refusals, and resumed runs."""

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
from tests.helpers.shards import tight_memory
from tonari import io
from tonari.graph.knn_graph import KNNGraph
from tonari.shards.directory.disk import Lock
from tonari.shards.workers import local

N, D, K = 1500, 8, 5
FILES = ("a.npy", "b.fbin")
DEALT = 1 + 4 + 1 + 1 + 5  # tasks before rows are assigned: samples, their truth, means, centres, blocks of rows


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.npy, and the same points divided into a.npy and b.fbin."""
    points = checks.gaussian(N, D)
    for name, rows in (("points.npy", points), (FILES[0], points[:500]), (FILES[1], points[500:])):
        io.write(tmp_path / name, rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _graph(*files: str, method: str = "exact", recall: float | None = None) -> tuple[str, ...]:
    """Return a command that builds several shards."""
    memory = tight_memory("points.npy", K, method, recall=recall)
    also = () if recall is None else ("--recall", str(recall))
    options = ("-k", str(K), "-o", "g/", "--memory", f"{memory}B", "--threads", "1", "--method", method, *also)
    return ("graph", *(files or FILES), *options)


def _interrupted(after: int, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> str:
    """Interrupt a run after some tasks, and return its output."""
    real, seen = local._finish, []

    def finish(*arguments: Any) -> None:
        real(*arguments)
        seen.append(arguments)
        if len(seen) == after:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(local, "_finish", finish)
        return run(*command, code=130).stderr


def test_a_directory_holds_the_graph_of_several_files() -> None:
    done = run(*_graph())
    graph, truth = KNNGraph.open("g"), tonari.knn_graph(np.load("points.npy"), K, method="exact")
    np.testing.assert_array_equal(graph.indices, truth.indices)
    np.testing.assert_array_equal(graph.distances, truth.distances)
    size = sum(path.stat().st_size for path in Path("g").iterdir())
    assert f"{N:,} rows, k={K}, euclidean, exact, in " in done.stdout
    assert f"wrote g, {size:,} bytes" in done.stdout


def test_the_plan_is_told_before_the_start() -> None:
    said = run(*_graph()).stderr
    assert said.startswith("tonari: plan:\n")
    plan = dict(line.split(maxsplit=1) for line in said.splitlines()[1:])
    assert plan["route"] == "exact"
    assert {"host_bytes", "device_bytes", "disk_bytes", "seconds"} <= set(plan)
    assert run(*_graph(), "--force", "-v").stderr.count("plan:") == 1
    assert run(*_graph()).stderr == ""  # complete: nothing starts


def test_a_directory_that_exists_needs_no_slash(folder: Path) -> None:
    (folder / "there").mkdir()
    facts = as_json("graph", "points.npy", "-k", str(K), "-o", "there", "--recall", "0.9", "--method", "clusters")
    assert (facts["output"], facts["rows"], facts["method"]) == ("there", N, "nn-descent")
    assert facts["report"]["target"] == 0.9
    assert KNNGraph.open("there").n == N


def test_the_same_command_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _interrupted(2, monkeypatch, _graph())
    known = as_json("info", "g")["extra"]["tasks_known"]
    assert [line for line in said.splitlines() if line][-2:] == [
        f"tonari: 2 of {known} tasks are done in g; the same command resumes from there",
        "tonari: interrupted",
    ]
    finished = []
    real = local._finish
    monkeypatch.setattr(local, "_finish", lambda *given: (finished.append(given), real(*given)))
    run(*_graph())
    assert len(finished) == known - 2
    np.testing.assert_array_equal(KNNGraph.open("g").indices, tonari.knn_graph(np.load("points.npy"), K).indices)


def test_force_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _interrupted(1, monkeypatch, (*_graph(), "--force"))
    assert "the same command without --force resumes from there" in said
    other = ("graph", *FILES, "-k", "3", "-o", "g/")
    assert f"holds a graph of k={K}, not 3; name another directory, or use resume=False (--force)" in refused(
        *other, code=1
    )
    run(*other, "--force")
    assert KNNGraph.open("g").k == 3


def test_an_interruption_before_anything_is_done_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "_work", interrupted)
    said = run(*_graph(), code=130).stderr
    assert said.splitlines()[-1] == "tonari: interrupted"
    assert "resumes" not in said


def test_info_of_a_graph_that_is_being_built(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted(DEALT, monkeypatch, _graph(method="clusters", recall=0.9))
    facts = as_json("info", "g")
    size = sum(path.stat().st_size for path in Path("g").rglob("*") if path.is_file())
    expected = {"path": "g", "format": "graph directory", "rows": N, "columns": K, "dtype": "int32", "bytes": size}
    assert {name: facts[name] for name in expected} == expected
    extra = facts["extra"]
    assert (extra["state"], extra["running"], extra["tasks_done"]) == ("building", False, DEALT)
    assert extra["tasks_known"] > DEALT
    assert extra["all_known"] is True  # the sizes of the shards are known after rows are assigned
    assert (extra["metric"], extra["target"], extra["seed"]) == ("euclidean", 0.9, 0)
    assert 0 < extra["covered"] <= 1
    assert "recall" not in extra
    assert extra["plan"]["route"] == "clusters"
    with Lock(Path("g")):
        shown = run("info", "g").stdout
    assert re.search(r"^ +running  True$", shown, re.MULTILINE)
    assert re.search(r"^ +disk_bytes  [\d.]+ MiB$", shown, re.MULTILINE)
    run_of = rf"^run:\nbuild_graph: {N:,} rows by clusters, .*\n(?:  .*\n)*  truth: [\d,]+ rows by exact, "
    assert re.search(run_of, shown, re.MULTILINE)
    assert [step["title"] for step in extra["record"]["steps"]] == ["sample", "means", "truth", "centres", "members"]


def test_info_before_all_tasks_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    said = _interrupted(1, monkeypatch, _graph(method="clusters", recall=0.9))
    assert "1 of the 7 tasks known so far are done in g; " in said
    extra = as_json("info", "g")["extra"]
    assert (extra["tasks_done"], extra["tasks_known"], extra["all_known"]) == (1, 7, False)
    assert "covered" not in extra


def test_info_of_a_complete_graph() -> None:
    run(*_graph(method="clusters", recall=0.9))
    extra = as_json("info", "g")["extra"]
    report = KNNGraph.open("g").report
    assert report is not None
    assert (extra["state"], extra["recall"], extra["target"]) == ("complete", report.estimate.by_distance, 0.9)
    assert "tasks_done" not in extra
    record = KNNGraph.open("g").record
    assert record is not None
    assert extra["record"] == json.loads(json.dumps(record.as_dict()))
    assert "  recall, " in run("info", "g").stdout
    exact = as_json("recall", "g", "points.npy")
    assert (exact["of_rows"], exact["metric"]) == (N, "euclidean")


def test_info_of_other_directories(folder: Path) -> None:
    (folder / "empty").mkdir()
    expected = "expected a directory that tonari.build_graph wrote"
    assert f"empty: has no manifest.json, {expected}" in refused("info", "empty", code=1)
    run(*_graph())
    manifest = folder / "g" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 99'))
    assert "its format version is 99" in refused("info", "g", code=1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("points.npy", "-o", "g.npz", "--method", "ggm"), 2, "'ggm' is for an output in a directory, -o DIR/"),
        (
            ("points.npy", "-o", "g/", "--method", "kdtree"),
            2,
            "unknown method 'kdtree'; expected one of 'auto'",
        ),
        (("points.npy", "-o", "g/", "--include-self"), 2, "'--include-self': g/ is a directory"),
        (("points.npy", "-o", "g/", "--key", "a"), 2, "'--key': g/ is a directory"),
        ((*FILES, "-o", "g.npz"), 2, "got 2 files of points: their graph is a directory, -o DIR/"),
        (("points.npy", "-o", "no/g/"), 1, "no/g: No such file or directory"),
        (("points.npy", "-o", "points.npy/"), 1, "points.npy: File exists"),
        (("absent.npy", "-o", "g/"), 1, "absent.npy: no such file"),
        (("points.npy", "-o", "g/", "--memory", "1MB"), 1, "memory=1000000: method='exact' needs at least "),
        (("points.npy", "-o", "full/"), 1, "full: is not empty"),
    ],
)
def test_what_is_refused(folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "precious").write_bytes(b"precious")
    assert said in refused("graph", *arguments, "-k", str(K), code=code)
    assert (folder / "full" / "precious").read_bytes() == b"precious"


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(folder: Path) -> None:
    # The slowest kernel: the build would take many seconds if it were not stopped.
    io.write("many.fbin", np.abs(checks.gaussian(40_000, 16)))
    memory = 2 * tight_memory("many.fbin", 3)  # of the fastest kernel
    command = [
        "graph",
        "many.fbin",
        "-k",
        "3",
        "-o",
        "g/",
        "--metric",
        "chi2",
        "--memory",
        f"{memory}B",
        "--threads",
        "1",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "tonari", *command], stderr=subprocess.PIPE, env=ENVIRONMENT | {"TONARI_ISA": "generic"}
    ) as running:
        try:
            until = time.monotonic() + 60
            while not list((folder / "g" / "done").glob("*.json")):
                assert time.monotonic() < until
                assert running.poll() is None
                time.sleep(0.01)
            assert as_json("info", "g")["extra"]["running"] is True
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
    extra = as_json("info", "g")["extra"]
    done, known = extra["tasks_done"], extra["tasks_known"]
    assert 0 < done < known
    assert [line for line in said.splitlines() if line][-2:] == [
        f"tonari: {done:,} of {known:,} tasks are done in g; the same command resumes from there",
        "tonari: interrupted",
    ]
