"""tonari verify: checks the answers of any program, from files."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.core.results.neighbors import Neighbors

N, M, D, K = 300, 20, 8, 5


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Neighbors:
    """Write the neighbours of queries.npy in points.fbin to the working directory."""
    points, queries = checks.gaussian(N, D, seed=1), checks.gaussian(M, D, seed=2)
    io.write(tmp_path / "points.fbin", points)
    io.write(tmp_path / "queries.npy", queries)
    monkeypatch.chdir(tmp_path)
    return tonari.search(queries, points, K)


def test_row_numbers_of_another_library(found: Neighbors) -> None:
    np.save("found.npy", found.indices.astype(np.int64))
    np.save("squares.npy", found.distances**2)
    assert as_json("verify", "found.npy", "points.fbin", "queries.npy")["exact"] is True
    facts = as_json("verify", "found.npy", "points.fbin", "queries.npy", "--distances", "squares.npy")
    assert facts["distances"]["wrong"] > M
    text = run("verify", "found.npy", "points.fbin", "queries.npy", "--distances", "squares.npy").stdout
    assert 'they look like squared distances: verify them with metric="sqeuclidean"' in text
    given = ("--distances", "squares.npy", "--metric", "sqeuclidean")
    assert as_json("verify", "found.npy", "points.fbin", "queries.npy", *given)["distances"]["looks_like"] == ""


@pytest.mark.parametrize("name", ["found.ibin", "found.npz", "found.hdf5"])
def test_files_of_neighbours(found: Neighbors, name: str) -> None:
    wrong = found.indices.copy()
    wrong[7, 2] = wrong[7, 1]
    for indices, exact in ((found.indices, True), (wrong, False)):
        if name.endswith(".ibin"):
            io.write_ground_truth(name, Neighbors(found.distances, indices))
        elif name.endswith(".npz"):
            np.savez(name, indices=indices, distances=found.distances)
        else:
            import h5py

            with h5py.File(name, "w") as file:
                file["neighbors"], file["distances"] = indices, found.distances
        facts = as_json("verify", name, "points.fbin", "queries.npy")
        assert (facts["exact"], facts["repeated"]) == (exact, int(not exact))


@pytest.mark.parametrize("name", ["g.npz", "g.hdf5"])
def test_graphs_with_filters_say_so_and_are_not_compared_with_all_points(found: Neighbors, name: str) -> None:
    facts = as_json("graph", "points.fbin", "-k", str(K), "--exclude-within", "3", "-o", name)
    assert facts["filters"] == ["exclude_within"]
    assert "exclude_within" in run("info", name, *(("--key", "neighbors") if name == "g.hdf5" else ())).stdout
    said = refused("verify", name, "points.fbin", code=1)
    how = "built" if name == "g.npz" else "found"
    assert f"{name}: was {how} with exclude_within=, so its lists leave out points" in said
    if name == "g.npz":
        for command in (("recall", name, "points.fbin"), ("report", name, "points.fbin", "-o", "r.html")):
            assert "the graph: was built with exclude_within=" in refused(*command, code=1)
    as_json("graph", "points.fbin", "-k", str(K), "-o", name, "--force")
    assert as_json("verify", name, "points.fbin")["exact"] is True


@pytest.mark.parametrize("name", ["f.npz", "f.hdf5"])
def test_results_with_filters_say_so_and_are_not_compared_with_all_points(found: Neighbors, name: str) -> None:
    mask = np.arange(len(io.read("points.fbin"))) % 2 == 0
    np.save("mask.npy", mask)
    np.save("other.npy", ~mask)
    search = ("search", "points.fbin", "queries.npy", "-k", str(K), "-o")
    for where, target in (("mask.npy", name), ("mask.npy", "same.npz"), ("other.npy", "other.npz")):
        run(*search, target, "--where", where)
    run(*search, "all.npz")
    said = refused("verify", name, "points.fbin", "queries.npy", code=1)
    assert f"{name}: was found with where=" in said
    assert as_json("recall", name, "same.npz")["by_index"] == 1
    assert "and all.npz with no filter, expected" in refused("recall", name, "all.npz", code=1)
    if name == "f.npz":
        assert "and other.npz with where= (bool" in refused("recall", name, "other.npz", code=1)
        digest = hashlib.sha256(mask.tobytes()).hexdigest()
        about = {"where": {"shape": [len(mask)], "dtype": "bool", "sha256": digest}}
        assert as_json("info", name)["extra"]["filters"] == about
        assert f"where= (bool, shape [{len(mask)}], SHA-256 {digest[:8]}...)" in run("info", name).stdout
        with np.load(name) as arrays:  # as releases before this record read it
            assert {"indices", "distances"} <= set(arrays.files)
        run(*search[:3], "--radius", "1.5", "--where", "mask.npy", "-o", "near.npz")
        assert as_json("info", "near.npz")["extra"]["filters"] == about
    assert as_json("verify", "all.npz", "points.fbin", "queries.npy")["exact"] is True
    assert "filters" not in as_json("info", "all.npz")["extra"]


def test_damaged_records_of_filters_are_refused(found: Neighbors) -> None:
    for text in ("[]", "{", '{"where": 1}', '{"a": {}}' + " " * (1 << 16)):
        np.savez("found.npz", indices=found.indices, distances=found.distances)
        with zipfile.ZipFile("found.npz", "a") as archive:
            archive.writestr("filters.json", text)
        for command in (("info", "found.npz"), ("verify", "found.npz", "points.fbin", "queries.npy")):
            assert "expected the properties of filters" in refused(*command, code=1)


def test_a_graph_brings_its_metric(found: Neighbors) -> None:
    points = io.read("points.fbin")
    tonari.knn_graph(points, K, metric="cosine", include_self=True).save("g.npz")
    facts = as_json("verify", "g.npz", "points.fbin", "--sample", "50", "--seed", "4")
    assert (facts["exact"], facts["metric"]) == (True, "cosine")
    assert (facts["recall"]["rows"], facts["recall"]["k"]) == (50, K - 1)  # without the point itself
    assert "records its metric" in refused("verify", "g.npz", "points.fbin", "--metric", "l1", code=2)
    assert "leave queries.npy out" in refused("verify", "g.npz", "points.fbin", "queries.npy", code=2)


def test_distances_that_are_no_numbers_are_null_in_json(found: Neighbors) -> None:
    np.save("found.npy", found.indices)
    distances: Any = found.distances.copy()
    distances[0, 0] = np.nan
    np.save("d.npy", distances)
    facts = as_json("verify", "found.npy", "points.fbin", "queries.npy", "--distances", "d.npy")
    assert (facts["distances"]["given"], facts["distances"]["largest"], facts["distances"]["wrong"]) == (None, None, 1)


def test_refusals(found: Neighbors) -> None:
    np.save("few.npy", found.indices[:3])
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    np.savez("found.npz", indices=found.indices, distances=found.distances)
    line = refused("verify", "few.npy", "points.fbin", "queries.npy", code=1)
    assert f"expected ({M}, k)" in line
    assert "has its own distances" in refused(
        "verify", "found.npz", "points.fbin", "queries.npy", "--distances", "few.npy", code=2
    )
    assert "objects.npy" in refused("verify", "objects.npy", "points.fbin", "queries.npy", code=1)
    assert "absent.npy" in refused("verify", "absent.npy", "points.fbin", "queries.npy", code=1)
