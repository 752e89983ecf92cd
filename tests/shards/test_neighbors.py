"""Neighbours of queries in a directory: the bits of a search in memory, resumed, and distinguished from graphs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tests.helpers.shards import tight_memory
from tonari import io
from tonari.graph.knn_graph import KNNGraph
from tonari.shards.planning.planner import plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.source import as_source
from tonari.shards.state import read_state
from tonari.shards.workers import local

N, M, D, K = 1500, 900, 8, 5


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.npy and queries.fbin."""
    points = checks.gaussian(N, D, seed=1)
    points[700:720] = points[3]  # ties across slabs
    io.write(tmp_path / "points.npy", points)
    io.write(tmp_path / "queries.fbin", np.concatenate([checks.gaussian(M - 20, D, seed=2), points[:20]]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _memory(metric: str = "euclidean") -> int:
    return tight_memory("points.npy", K, metric=metric, queries="queries.fbin")


def _build(out: str = "t", **options: Any) -> tonari.Neighbors:
    given = {"source": "points.npy", "queries": "queries.fbin", "k": K, "threads": 1, "memory": _memory()} | options
    return tonari.build_neighbors(out=out, **given)


def _same(found: tonari.Neighbors, truth: tonari.Neighbors) -> bool:
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(found, truth, strict=True))


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "l1"])
def test_the_bits_are_those_of_a_search(metric: str) -> None:
    found = _build(metric=metric, memory=_memory(metric))
    plan = read_state(Path("t")).plan
    assert plan.shards > 1
    assert plan.block < M
    truth = tonari.search(io.read("queries.fbin"), io.read("points.npy"), K, metric=metric, method="exact")
    assert isinstance(found.indices, np.memmap)
    assert _same(found, truth)
    assert _same(tonari.open_neighbors("t"), truth)


@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, N), (3, N - 1), (257, 3)])
def test_few_queries_and_many_neighbours(m: int, k: int) -> None:
    queries, points = io.read("queries.fbin")[:m], io.read("points.npy")
    found = tonari.build_neighbors(points, queries, k, "t")
    assert _same(found, tonari.search(queries, points, k, method="exact"))


@pytest.mark.parametrize("dtype", ["float64", "uint8", "float16"])
def test_dtypes(dtype: str) -> None:
    points, queries = ((10 * io.read(name)).astype(dtype) for name in ("points.npy", "queries.fbin"))
    assert _same(tonari.build_neighbors(points, queries, K, "t"), tonari.search(queries, points, K, method="exact"))


def test_queries_that_are_points_find_themselves() -> None:
    found = _build(queries="points.npy")
    graph = tonari.build_graph("points.npy", K, "g", memory=tight_memory("points.npy", K), threads=1)
    own = np.arange(N) != 3
    own[700:720] = False
    np.testing.assert_array_equal(found.indices[own, 0], np.arange(N)[own])
    np.testing.assert_array_equal(found.indices[own, 1:], graph.indices[own, :-1])


def test_budgets_are_kept_and_read_little() -> None:
    """A few queries stay in memory while points are streamed: the larger the slabs, the fewer the passes."""
    sizes = Sizes(as_source("points.npy"), K, "euclidean", None, (), 1, 10)
    plan = plan_build(sizes, "exact", 10**9)
    assert (plan.rows, plan.shards, plan.block) == (N, 1, 10)
    assert plan.disk_bytes < 10 * K * 8 + 2**20 + 1
    tight = plan_build(Sizes(as_source("points.npy"), K, "euclidean", None, (), 1, M), "exact", _memory())
    assert tight.host_bytes <= _memory()


def _interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    real = local._finish

    def finish(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(local, "_finish", finish)
        with pytest.raises(KeyboardInterrupt):
            _build()


def test_an_interrupted_search_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(monkeypatch)
    with pytest.raises(ValueError, match=r"t: these neighbours are not complete; .* same call, which resumes"):
        tonari.open_neighbors("t")
    state = read_state(Path("t"))
    assert (state.tasks_done, state.all_known) == (1, True)
    finished = []
    real = local._finish
    monkeypatch.setattr(local, "_finish", lambda *given: (finished.append(given), real(*given)))
    assert _same(_build(), tonari.search(io.read("queries.fbin"), io.read("points.npy"), K, method="exact"))
    assert len(finished) == state.tasks_known - 1


def test_other_queries_do_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(monkeypatch)
    queries = np.array(io.read("queries.fbin"))
    io.write("others.fbin", queries + 1)
    with pytest.raises(ValueError, match=r"t: holds a search of .*name another directory, or use resume=False"):
        _build(queries="others.fbin")
    io.write("queries.fbin", queries + 1)
    with pytest.raises(ValueError, match=r"t: holds a search of files that have changed since"):
        _build()
    assert _same(_build(overwrite=True), tonari.search(queries + 1, io.read("points.npy"), K, method="exact"))


def test_queries_that_change_while_they_are_searched() -> None:
    io.write("many.fbin", checks.gaussian(4 * N, D))  # more than one block is read ahead of the finished one

    def touch(done: int, total: int) -> None:
        os.utime("many.fbin", ns=(0, 0))

    with pytest.raises(ValueError, match=r"many.fbin: has changed since"):
        _build(queries="many.fbin", progress=touch)
    assert 1 <= read_state(Path("t")).tasks_done < read_state(Path("t")).tasks_known


def test_graphs_and_neighbours_are_told_apart() -> None:
    _build()
    tonari.build_graph("points.npy", K, "g")
    with pytest.raises(ValueError, match=r"t: holds neighbours of queries; open it with tonari.open_neighbors"):
        KNNGraph.open("t")
    with pytest.raises(ValueError, match=r"g: holds a graph; open it with tonari.KNNGraph.open"):
        tonari.open_neighbors("g")
    with pytest.raises(ValueError, match=r"t: holds neighbours of queries, not a graph; name another directory"):
        tonari.build_graph("points.npy", K, "t")
    with pytest.raises(ValueError, match=r"g: holds a graph, not neighbours of queries; name another directory"):
        _build("g")
    manifest = json.loads(Path("t/manifest.json").read_text())
    assert manifest["format"] == "tonari.neighbors"
    assert "queries" not in json.loads(Path("g/manifest.json").read_text())
    del manifest["queries"]
    Path("t/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(io.FileFormatError, match=r"its format is 'tonari.neighbors', but it has no queries"):
        tonari.open_neighbors("t")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"queries": np.ones((2, D))}, "queries are float64 with 8 columns, the points float32 with 8"),
        ({"queries": np.ones((2, 3), np.float32)}, "queries are float32 with 3 columns"),
        ({"queries": np.full((2, D), np.nan, np.float32)}, "queries: row 0 has a value"),
        ({"k": N + 1}, f"the largest k is {N}"),
        ({"memory": "1MB"}, "memory=1000000: .* needs at least "),
        ({"metric": "cosin"}, "cosin"),
    ],
)
def test_what_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        _build(**options)


def test_the_command_line() -> None:
    command = ("search", "points.npy", "queries.fbin", "-k", str(K), "-o", "t/", "--memory", f"{_memory()}B")
    done = run(*command, "--threads", "1")
    assert done.stderr.startswith("tonari: plan:\n")
    assert f"{M} queries in {N:,} points, k={K}, euclidean, in " in done.stdout
    truth = tonari.search(io.read("queries.fbin"), io.read("points.npy"), K, method="exact")
    assert _same(tonari.open_neighbors("t"), truth)
    facts = as_json(*command)
    size = sum(path.stat().st_size for path in Path("t").iterdir())
    assert (facts["rows"], facts["points"], facts["bytes"]) == (M, N, size)
    told = as_json("info", "t")
    assert (told["format"], told["rows"], told["extra"]["points"]) == ("neighbours directory", M, N)
    assert "expected 'exact' or 'auto'" in refused(*command, "--method", "kdtree", code=2)
    assert "'--queries-key': t/ is a directory" in refused(*command, "--queries-key", "test", code=2)
    assert "t: holds neighbours of queries" in refused("recall", "t", "points.npy", code=1)
