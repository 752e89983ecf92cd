"""Options that several commands share: they reach the library, and invalid values are usage errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.api import graphs, searching
from tonari.api.planning import plan as planning
from tonari.graph import recall as quality
from tonari.graph.knn_graph import KNNGraph

N, M, D = 300, 20, 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_columns_are_changed_by_files(folder: Path) -> None:
    points, queries = io.read("points.fbin"), io.read("queries.npy")
    arrays = {"covariance": np.cov(points.T), "V": points.var(axis=0), "transform": checks.gaussian(D, 2, 3)}
    arrays["VI"] = np.linalg.inv(arrays["covariance"])
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
        metric = {"V": "seuclidean", "transform": "l1"}.get(name, "mahalanobis")
        options = "--metric", metric, f"--{name}", f"{name}.npy", "--force"
        given: dict[str, Any] = {"metric": metric, name: array}
        run("graph", "points.fbin", "-k", "3", "-o", "g.npz", *options)
        graph, expected = KNNGraph.load("g.npz"), tonari.knn_graph(points, 3, **given)
        assert graph.distances.tobytes() == expected.distances.tobytes()
        assert as_json("recall", "g.npz", "points.fbin")["by_index"] == 1
        assert as_json("verify", "g.npz", "points.fbin")["exact"]
        assert ("transform" in as_json("info", "g.npz")["extra"]) == (name != "V")
        run("search", "points.fbin", "queries.npy", "-k", "3", "-o", "t.npz", *options)
        with np.load("t.npz") as archive:
            found = tonari.search(queries, points, 3, **given)
            assert archive["distances"].tobytes() == found.distances.tobytes()
        run("pairs", "points.fbin", "--radius", "1.5", "-o", "p.npy", *options)
        assert np.load("p.npy")["left"].tolist() == tonari.pairs(points, 1.5, **given).left.tolist()
    run("graph", "points.fbin", "-k", "3", "-o", "g/", *options)
    assert KNNGraph.open("g/").distances.tobytes() == expected.distances.tobytes()
    assert "pass VI=" in refused("graph", "points.fbin", "-k", "3", "-o", "h.npz", "--metric", "mahalanobis", code=1)
    assert "no.npy" in refused("graph", "points.fbin", "-k", "3", "-o", "h.npz", "--transform", "no.npy", code=1)


def test_memory_and_method_reach_the_search(folder: Path) -> None:
    command = ("graph", "points.fbin", "-k", "3", "-o", "g.npz")
    assert "memory budget of 3000 bytes" in refused(*command, "--memory", "3kB", code=1)
    assert "'--memory'" in refused(*command, "--memory", "3", code=2)
    assert "unknown method 'guess'" in refused(*command, "--method", "guess", code=2)
    assert not (folder / "g.npz").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), "auto"),
        (("--device", "cpu"), "cpu"),
        (("--device", "cuda"), "cuda"),
        (("--device", "cuda:1"), "cuda:1"),
        (("--device", "cuda:all"), "cuda:all"),
        (("--device", "cuda:0,cuda:1"), ["cuda:0", "cuda:1"]),
    ],
)
def test_the_device_reaches_the_verbs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], expected: Any
) -> None:
    seen = []

    def verb(*arguments: Any, device: Any, **options: Any) -> None:
        seen.append(device)
        raise ValueError("enough")

    for module, name in ((graphs, "knn_graph"), (searching, "search"), (planning, "plan")):
        monkeypatch.setattr(module, name, verb)
    refused("graph", "points.fbin", "-k", "3", "-o", "g.npz", *given, code=1)
    refused("search", "points.fbin", "queries.npy", "-k", "3", "-o", "t.npz", *given, code=1)
    refused("plan", "points.fbin", "-k", "3", *given, code=1)
    assert seen == [expected] * 3


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cpu,cuda:0", "cuda:0,"])
def test_a_device_that_is_none_is_wrong_usage(folder: Path, device: str) -> None:
    assert "'--device'" in refused("plan", "points.fbin", "-k", "3", "--device", device, code=2)


@pytest.mark.parametrize(
    ("module", "verb", "arguments"),
    [
        (graphs, "knn_graph", ("graph", "points.fbin", "-k", "3", "-o", "o.npz")),
        (searching, "search", ("search", "points.fbin", "queries.npy", "-k", "3", "-o", "o.npz")),
        (planning, "plan", ("plan", "points.fbin", "-k", "3")),
        (quality, "graph_recall", ("recall", "g.npz", "points.fbin")),
    ],
)
def test_options_reach_the_library(
    folder: Path, monkeypatch: pytest.MonkeyPatch, module: Any, verb: str, arguments: tuple[str, ...]
) -> None:
    tonari.knn_graph(io.read("points.fbin"), 3).save("g.npz")
    called: dict[str, Any] = {}
    real = getattr(module, verb)

    def record(*positional: Any, **named: Any) -> Any:
        called.update(named)
        return real(*positional, **named)

    monkeypatch.setattr(module, verb, record)
    wanted: dict[str, Any] = {"threads": 3}
    options = ["--threads", "3"]
    if verb != "plan":
        wanted["progress"] = True
        options.append("--progress")
    if verb != "graph_recall":
        wanted |= {"metric": "l1", "method": "exact", "memory": 10**9}
        options += ["--metric", "l1", "--method", "exact", "--memory", "1GB"]
    run(*arguments, *options)
    assert {name: called[name] for name in wanted} == wanted
