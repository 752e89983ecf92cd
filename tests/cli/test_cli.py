"""The command line as a whole: options that reach the library, help, processes, and interrupts."""

from __future__ import annotations

import json
import os
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
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute

N, M, D, K = 300, 20, 8, 5
COMMANDS = ("graph", "search", "pairs", "merge", "recall", "verify", "report", "info", "convert", "plan", "warm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _truth(metric: str = "euclidean", k: int = K) -> Any:
    points = io.read("points.fbin")
    return brute(points, points, k, metric, self_ids=np.arange(N))


def test_progress_is_on_stderr_and_only_if_wanted(folder: Path) -> None:
    command = ("graph", "points.fbin", "-k", "3", "--force", "-o", "g.npz")
    assert "neighbours" in run(*command, "--progress").stderr
    assert "neighbours" not in run(*command, "--progress").stdout
    assert run(*command, "--no-progress").stderr == ""


@pytest.mark.parametrize("name", ["t.npz", "t.ibin"])
def test_search_writes_the_exact_neighbours(folder: Path, name: str) -> None:
    facts = as_json("search", "points.fbin", "queries.npy", "-k", str(K), "-o", name, "--metric", "sqeuclidean")
    truth = brute(io.read("queries.npy"), io.read("points.fbin"), K, "sqeuclidean")
    if name == "t.npz":
        with np.load(name) as archive:
            assert set(archive.files) == {"indices", "distances"}
            found = tonari.Neighbors(archive["distances"], archive["indices"])
    else:
        found = io.read_ground_truth(name)
    np.testing.assert_array_equal(found.indices, truth.indices)
    np.testing.assert_array_equal(found.distances, truth.distances)
    assert facts.pop("seconds") > 0
    size = (folder / name).stat().st_size
    assert [one["path"] for one in facts.pop("read")] == ["points.fbin", "queries.npy"]
    assert facts.pop("record")["rows"] == M
    assert facts == {"output": name, "rows": M, "points": N, "k": K, "metric": "sqeuclidean", "bytes": size}


def test_keys_name_the_points_and_the_queries(folder: Path) -> None:
    points, queries = io.read("points.fbin"), io.read("queries.npy")
    np.savez("both.npz", base=points, asked=queries)
    command = ("search", "both.npz", "both.npz", "-k", "3", "-o", "t.npz")
    assert "base, asked" in refused(*command, code=1)
    run(*command, "--key", "base", "--queries-key", "asked")
    with np.load("t.npz") as archive:
        np.testing.assert_array_equal(archive["indices"], brute(queries, points, 3).indices)


def test_queries_in_hdf5_are_the_test_set(folder: Path) -> None:
    h5py = pytest.importorskip("h5py")
    points, queries = io.read("points.fbin"), io.read("queries.npy")
    with h5py.File("set.hdf5", "w") as file:
        file["train"], file["test"] = points, queries
    run("search", "set.hdf5", "set.hdf5", "-k", "3", "-o", "t.ibin")
    np.testing.assert_array_equal(io.read_ground_truth("t.ibin").indices, brute(queries, points, 3).indices)
    run("search", "set.hdf5", "set.hdf5", "--queries-key", "train", "-k", "1", "-o", "own.ibin")
    np.testing.assert_array_equal(io.read_ground_truth("own.ibin").indices[:, 0], np.arange(N))


def _damaged_graph() -> KNNGraph:
    """Make the true graph, with a far point as the last neighbour in a third of the rows."""
    truth = _truth()
    far = brute(io.read("points.fbin"), io.read("points.fbin"), N - 1, self_ids=np.arange(N)).indices[:, -1]
    indices = truth.indices.copy()
    indices[::3, -1] = far[::3]
    return KNNGraph(indices, truth.distances, "euclidean", "by hand")


@pytest.mark.parametrize("command", ["graph", "recall", "plan", "info"])
def test_a_key_names_the_array(folder: Path, command: str) -> None:
    _damaged_graph().save("g.npz")
    np.savez("both.npz", points=io.read("points.fbin"), few=io.read("queries.npy"))
    arguments = {
        "graph": ["both.npz", "-k", "2", "-o", "o.npz"],
        "recall": ["g.npz", "both.npz"],
        "plan": ["both.npz", "-k", "2"],
        "info": ["both.npz"],
    }[command]
    assert "points, few" in refused(command, *arguments, code=1)
    assert as_json(command, *arguments, "--key", "points")["n" if command == "plan" else "rows"] == N


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    text = run(command, "--help").stdout
    assert f"Example:\n    tonari {command} " in text
    assert "--json" in text


def test_help_without_a_command() -> None:
    assert all(f"  {command} " in run("-h").stdout for command in COMMANDS)
    bare = run(code=2)
    assert bare.stdout == ""
    assert "Usage:" in bare.stderr
    assert tonari.__version__ in run("--version").stdout


def _process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tonari", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT)


@pytest.mark.process
def test_a_process_runs(folder: Path) -> None:
    done = _process("graph", "points.fbin", "-k", str(K), "-o", "g.npz", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == N
    np.testing.assert_array_equal(KNNGraph.load("g.npz").indices, _truth().indices)


@pytest.mark.process
def test_a_process_fails_with_its_exit_code(folder: Path) -> None:
    (folder / "cut.fbin").write_bytes(b"\x01\x02")
    done = _process("graph", "cut.fbin", "-k", "1", "-o", "g.npz")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tonari: error: cut.fbin: found 2 bytes")
    assert done.stderr.count("\n") == 1
    assert _process("graph", "cut.fbin", "-k", "none", "-o", "g.npz").returncode == 2


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_a_search_and_leaves_nothing(folder: Path, threads: int) -> None:
    # The slowest kernel: the search would take minutes if it were not stopped.
    io.write("many.fbin", np.abs(checks.gaussian(200_000, 32)))
    command = ["search", "many.fbin", "many.fbin", "-k", "10", "-o", "t.npz", "--metric", "chi2"]
    before = sorted(path.name for path in folder.iterdir())
    with subprocess.Popen(
        [sys.executable, "-m", "tonari", *command, "--progress", "--threads", str(threads)],
        stderr=subprocess.PIPE,
        env=ENVIRONMENT | {"TONARI_ISA": "generic"},
    ) as running:
        try:
            assert running.stderr is not None
            seen = b""
            while b"neighbours:" not in seen or b" 0.00/" in seen.split(b"\r")[-1]:  # until the progress bar has moved
                piece = os.read(running.stderr.fileno(), 4096)
                assert piece, f"ended before it could be interrupted: {seen!r}"
                seen += piece
            running.send_signal(signal.SIGINT)
            sent = time.perf_counter()
            rest = running.stderr.read()
            code = running.wait(timeout=30)
            took = time.perf_counter() - sent
        finally:
            running.kill()
    assert code == 130
    assert took < 2.0, f"took {took:.1f} s to stop"
    assert rest.rstrip().endswith(b"tonari: interrupted")
    assert b"Traceback" not in rest
    assert sorted(path.name for path in folder.iterdir()) == before


def test_ctrl_c_while_writing_leaves_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "old.npz").write_bytes(b"precious")
    before = sorted(path.name for path in folder.iterdir())

    def half(file: Any, **_: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    for command in (("graph", "points.fbin"), ("search", "points.fbin", "queries.npy")):
        result = run(*command, "-k", "1", "-o", "old.npz", "--force", code=130)
        assert result.stderr.strip() == "tonari: interrupted"
        assert (folder / "old.npz").read_bytes() == b"precious"
        assert sorted(path.name for path in folder.iterdir()) == before


def _imported(*arguments: str) -> set[str]:
    """Return the modules that a fresh interpreter imports to run these arguments."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=ENVIRONMENT)
    return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.process
def test_help_imports_nothing_heavy() -> None:
    modules = _imported("-m", "tonari", "--help")
    assert "click" in modules
    assert not modules & {"scipy", "h5py", "torch", "tqdm", "sklearn"}
