"""tonari recall: of graphs and of found neighbours, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.graph import recall as quality
from tonari.graph.knn_graph import KNNGraph
from tonari.metrics.recall import neighbors_recall
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


def test_recall_of_all_rows_and_of_a_sample(folder: Path) -> None:
    graph = _damaged_graph()
    graph.save("g.npz")
    whole = as_json("recall", "g.npz", "points.fbin")
    assert whole["rows"] == whole["of_rows"] == N
    assert whole["by_distance"] == whole["low"] == whole["high"] == pytest.approx(1 - 1 / (3 * K))
    assert (whole["k"], whole["metric"], whole["seed"]) == (K, "euclidean", 0)

    part = as_json("recall", "g.npz", "points.fbin", "--sample", "40", "--seed", "3")
    expected = quality.graph_recall(graph.lists, io.read("points.fbin"), sample=40, seed=3)
    assert (part["by_distance"], part["low"], part["high"]) == (expected.by_distance, expected.low, expected.high)
    assert (part["rows"], part["seed"]) == (40, 3)
    assert part["low"] < part["by_distance"] < part["high"]
    other = quality.graph_recall(graph.lists, io.read("points.fbin"), sample=40, seed=0)
    assert other.by_distance != expected.by_distance, "the seed would not be seen"

    text = run("recall", "g.npz", "points.fbin", "--sample", "40", "--seed", "3").stdout
    assert f"{expected.by_distance:.8g}, 95 % interval {expected.low:.8g} to {expected.high:.8g}" in text
    assert f"40 of {N} rows" in text


def test_recall_refuses_other_points(folder: Path) -> None:
    _damaged_graph().save("g.npz")
    assert f"the graph has {N} rows, points has {M}" in refused("recall", "g.npz", "queries.npy", code=1)
    assert "absent.npz" in refused("recall", "absent.npz", "points.fbin", code=1)
    whole = (folder / "g.npz").read_bytes()
    (folder / "g.npz").write_bytes(whole[:-300])
    assert f"found {len(whole) - 300} bytes" in refused("recall", "g.npz", "points.fbin", code=1)


def _found_and_truth(metric: str = "euclidean") -> tuple[tonari.Neighbors, tonari.Neighbors]:
    """Write found.* and truth.* as .ibin and .npz: the true neighbours, and the same with a third of the rows wrong."""
    truth = brute(io.read("queries.npy"), io.read("points.fbin"), 2 * K, metric)
    indices, distances = (np.array(part[:, :K]) for part in (truth.indices, truth.distances))
    indices[::3, -1], distances[::3, -1] = truth.indices[::3, -1], truth.distances[::3, -1]
    found = tonari.Neighbors(distances, indices)
    for name, part in (("found", found), ("truth", truth)):
        io.write_ground_truth(f"{name}.ibin", part)
        np.savez(f"{name}.npz", indices=part.indices, distances=part.distances)
    return found, truth


@pytest.mark.parametrize("suffixes", [(".ibin", ".ibin"), (".npz", ".ibin"), (".ibin", ".npz"), (".ibin", ".hdf5")])
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_recall_of_found_neighbours(folder: Path, suffixes: tuple[str, str], metric: str) -> None:
    found, truth = _found_and_truth(metric)
    with pytest.importorskip("h5py").File("truth.hdf5", "w") as file:
        file["neighbors"], file["distances"] = truth.indices, truth.distances
    given = () if metric == "euclidean" else ("--metric", metric)
    facts = as_json("recall", f"found{suffixes[0]}", f"truth{suffixes[1]}", *given)
    shared = [
        len(set(a) & set(b)) / K for a, b in zip(found.indices.tolist(), truth.indices[:, :K].tolist(), strict=True)
    ]
    assert facts["by_index"] == pytest.approx(np.mean(shared)) == pytest.approx(1 - 7 / (M * K))
    expected = neighbors_recall(found, truth, metric=metric)
    assert (facts["by_distance"], facts["low"], facts["high"]) == (expected.by_distance, expected.low, expected.high)
    assert (facts["rows"], facts["k"], facts["metric"]) == (M, K, metric)
    result = run("recall", f"found{suffixes[0]}", f"truth{suffixes[1]}", *given)
    assert f"recall@{K} by index     {expected.by_index:.8g}" in result.stdout
    assert f"recall@{K} by distance  {expected.by_distance:.8g}, 95 % interval" in result.stdout
    assert result.stderr == ""


def test_recall_of_what_tonari_search_writes(folder: Path) -> None:
    for name in ("a.ibin", "b.npz"):
        run("search", "points.fbin", "queries.npy", "-k", str(K), "-o", name)
    for pair in (("a.ibin", "b.npz"), ("b.npz", "a.ibin")):
        facts = as_json("recall", *pair)
        assert (facts["by_index"], facts["by_distance"]) == (1.0, 1.0)


def test_recall_says_what_a_file_is_and_what_was_expected(folder: Path) -> None:
    _damaged_graph().save("g.npz")
    _found_and_truth()
    np.savez("many.npz", a=np.ones((2, 2)), b=np.ones((3, 2)))
    io.write("ids.ibin", np.ones((M, K), np.int32))
    for pair, said in (
        (("found.ibin", "points.fbin"), "points.fbin: holds 300 x 8 values of float32, expected the true neighbours"),
        (
            ("found.npz", "points.fbin"),
            "to measure found.npz against (.ibin, .npz or .hdf5), since found.npz holds ne",
        ),
        (("found.ibin", "g.npz"), "g.npz: holds a graph, expected the true neighbours"),
        (("points.fbin", "points.fbin"), "points.fbin: holds 300 x 8 values of float32, expected a graph (.npz, as to"),
        (("many.npz", "points.fbin"), "many.npz: holds other arrays, expected a graph"),
        (("ids.ibin", "truth.ibin"), "ids.ibin: holds 20 x 5 values of int32, expected a graph"),
        (("g.npz", "truth.ibin"), "truth.ibin: holds neighbours, expected the points from which g.npz was built"),
        (("g.npz", "found.npz"), "found.npz: holds neighbours, expected the points from which g.npz was built"),
        (("g.npz", "g.npz"), "g.npz: holds a graph, expected the points from which"),
        (
            ("truth.ibin", "found.ibin"),
            "truth.ibin: holds 10 neighbours of 20 queries, expected at most 5 neighbours of 20 queries",
        ),
        (("found.ibin", "absent.ibin"), "absent.ibin: no such file"),
    ):
        line = refused("recall", *pair, code=1)
        assert said in line, (pair, line)
        assert "pickle" not in line


def test_recall_of_distances_that_are_not_of_one_kind(folder: Path) -> None:
    found, truth = _found_and_truth()
    io.write_ground_truth("found.ibin", found._replace(distances=found.distances**2))
    result = run("recall", "found.ibin", "truth.ibin", "--json")
    facts = json.loads(result.stdout)
    assert facts["by_index"] == neighbors_recall(found, truth).by_index
    assert [facts[name] for name in ("by_distance", "low", "high")] == [None] * 3
    assert result.stderr.startswith(
        f"tonari: warning: found.ibin and truth.ibin: the distance to point {truth.indices[0, 0]} of row 0 is "
        f"{found.distances[0, 0] ** 2:.6g} in one and {found.distances[0, 0]:.6g} in the other"
    )
    assert f"recall@{K} by distance  unknown" in run("recall", "found.ibin", "truth.ibin").stdout
    io.write_ground_truth("found.ibin", found._replace(distances=found.distances * np.float32(1 + 1e-5)))
    assert as_json("recall", "found.ibin", "truth.ibin")["by_distance"] is not None  # last bits of another program


def test_recall_looks_at_the_order_of_the_truth(folder: Path) -> None:
    _found_and_truth("inner_product")
    line = refused("recall", "found.ibin", "truth.ibin", code=1)
    assert "truth.ibin: row 0 goes from" in line
    assert "give --metric inner_product for similarities" in line
    _found_and_truth()
    line = refused("recall", "found.ibin", "truth.ibin", "--metric", "inner_product", code=1)
    assert "leave --metric inner_product out" in line


def test_recall_refuses_options_that_it_would_not_use(folder: Path) -> None:
    _damaged_graph().save("g.npz")
    _found_and_truth()
    for option in (("--sample", "9"), ("--seed", "1"), ("--key", "x"), ("--threads", "1"), ("--progress",)):
        line = refused("recall", "found.ibin", "truth.ibin", *option, code=2)
        assert f"'{option[0]}" in line
        assert "found.ibin is not a graph, expected one with this option; leave the option out" in line
    assert "'--metric'" in refused("recall", "g.npz", "points.fbin", "--metric", "l1", code=2)
