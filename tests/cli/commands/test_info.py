"""tonari info: the description of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.reference import brute

N, M, D, K = 300, 20, 8, 5


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


def _damaged_graph() -> KNNGraph:
    """Make the true graph, with a far point as the last neighbour in a third of the rows."""
    truth = _truth()
    far = brute(io.read("points.fbin"), io.read("points.fbin"), N - 1, self_ids=np.arange(N)).indices[:, -1]
    indices = truth.indices.copy()
    indices[::3, -1] = far[::3]
    return KNNGraph(indices, truth.distances, "euclidean", "by hand")


def test_info_describes_points(folder: Path) -> None:
    facts = as_json("info", "points.fbin")
    size = 8 + 4 * N * D
    expected = {"path": "points.fbin", "format": "fbin", "rows": N, "columns": D, "dtype": "float32", "bytes": size}
    assert {name: value for name, value in facts.items() if name != "extra"} == expected
    lines = dict(line.split(maxsplit=1) for line in run("info", "points.fbin").stdout.splitlines())
    assert (lines["rows"], lines["columns"], lines["bytes"]) == (str(N), str(D), f"{size:,}")


def test_info_tells_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    index = tonari.Index(checks.gaussian(30, 4), metric="l1", method="exact", threads=1)
    index.remove([2])
    index.save("points.npy")  # by any file name
    facts = as_json("info", "points.npy")
    assert (facts["format"], facts["rows"], facts["columns"], facts["dtype"]) == ("index", 29, 4, "float32")
    assert facts["bytes"] == Path("points.npy").stat().st_size
    expected = {"metric": "l1", "method": "exact", "asked": "exact", "device": "auto", "on": None}
    assert facts["extra"] == expected | {"threads": 1, "memory": None, "next_id": 30}
    assert "next_id  30" in run("info", "points.npy").stdout
    tonari.Index(index.points, weights=[1, 2, 0, 0.5]).save("weighted")
    assert as_json("info", "weighted")["extra"]["weights"] == [1, 2, 0, 0.5]
    Path("points.npy").write_bytes(Path("points.npy").read_bytes()[:-1])
    assert "expected what tonari.Index.save writes" in refused("info", "points.npy", code=1)


def _range(distances: np.ndarray) -> dict[str, float]:
    values = distances.astype(np.float64)
    return {"min": values.min(), "median": np.median(values), "max": values.max()}


def test_info_describes_a_graph(folder: Path) -> None:
    graph = _damaged_graph()
    graph.indices[4, 3:], graph.distances[4, 3:] = -1, np.inf
    KNNGraph(graph.indices, graph.distances, "l1", "by hand", seed=7).save("g.npz")
    facts = as_json("info", "g.npz")
    assert (facts["format"], facts["rows"], facts["columns"], facts["dtype"]) == ("graph", N, K, "int32")
    assert facts["bytes"] == (folder / "g.npz").stat().st_size
    assert facts["extra"] == {
        "distances": "float32",
        "metric": "l1",
        "method": "by hand",
        "include_self": False,
        "seed": 7,
        "missing": K - 3,
        "first": _range(graph.distances[:, 0]),
        "last": _range(np.delete(graph.distances[:, -1], 4)),
        "zero": int((graph.distances == 0).sum()),
        "components": int(graph.connected_components().max()) + 1,
    }
    lines = dict(line.split(maxsplit=1) for line in run("info", "g.npz").stdout.splitlines())
    told = _range(graph.distances[:, 0])
    assert lines["first"] == f"min {told['min']:.6g}, median {told['median']:.6g}, max {told['max']:.6g}"
    assert as_json("info", "g.npz", "--key", "distances")["dtype"] == "float32"


def test_info_of_similarities_and_of_a_graph_without_neighbours(folder: Path) -> None:
    tonari.knn_graph(io.read("points.fbin"), 1, include_self=True).save("self.npz")
    tonari.knn_graph(io.read("points.fbin"), K, metric="inner_product").save("similar.npz")
    assert as_json("info", "similar.npz")["extra"]["zero"] is None
    facts = as_json("info", "self.npz")["extra"]
    assert (facts["first"], facts["zero"], facts["components"]) == (None, 0, N)
    assert "first  -\n" in run("info", "self.npz").stdout


def test_info_of_distances_beyond_their_dtype(folder: Path) -> None:
    graph = _damaged_graph()
    graph.distances[:, -1] = np.inf
    KNNGraph(graph.indices, graph.distances, "l1", "by hand").save("g.npz")
    assert as_json("info", "g.npz")["extra"]["last"] == {"min": None, "median": None, "max": None}
    assert "last  min -, median -, max -\n" in run("info", "g.npz").stdout


def test_info_describes_found_neighbours(folder: Path) -> None:
    for name, form in (("t.npz", "neighbours"), ("t.ibin", "ground truth")):
        run("search", "points.fbin", "queries.npy", "-k", str(K), "-o", name)
        facts = as_json("info", name)
        assert (facts["format"], facts["rows"], facts["columns"], facts["dtype"]) == (form, M, K, "int32")
        assert facts["extra"] == {"distances": "float32"}


def test_info_refuses_what_it_cannot_describe(folder: Path) -> None:
    np.savez("many.npz", a=np.ones((2, 2)), b=np.ones((3, 2)))
    assert "a, b" in refused("info", "many.npz", code=1)
    assert as_json("info", "many.npz", "--key", "b")["rows"] == 3
    whole = (folder / "many.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    assert f"found {len(whole) // 2} bytes" in refused("info", "cut.npz", code=1)
    assert "absent.fbin: no such file" in refused("info", "absent.fbin", code=1)
