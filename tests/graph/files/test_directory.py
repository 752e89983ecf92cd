"""Graphs in directories: stored ones of format version 1, and refusals when opening one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tonari
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.shards import clustered, lists, small, stopped
from tonari.cli import main
from tonari.graph.files.directory import Manifest
from tonari.io import FileFormatError

STORED = Path(__file__).with_name("data")


# The first row of the approximate graph, and SHA-256 of names and contents of the files.
INDICES, DISTANCES = [30, 1, 24], [74.75, 117.25, 124.5]
DIGESTS = {
    "exact-float32-v1": "ea659574b4be499d8a9d4dc3d730460fba446f5ad755e1b4d98b0acd356ca8c0",
    "exact-float64-v1": "1365e7768854221c2bf4fb84d581c2fc3530c19192a9469b97fb4a2ac523dd12",
    "clusters-v1": "04ea4893ee137dfa4eb7849fd1be72f5e32569c71b03c56000d795ae22b75f71",
}


def stored_points(dtype: str) -> Array:
    """Make the points of the stored graphs by integer arithmetic, so that no random generator has to stay the same."""
    at = np.arange(40 * 3).reshape(40, 3)
    return ((at * at * 7919 + at * 104729) % 1009 / 8).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_stored_exact_graph_is_read(dtype: str) -> None:
    """An earlier release wrote these files, and they must not be written again."""
    graph = tonari.KNNGraph.open(STORED / f"exact-{dtype}-v1")
    assert (graph.n, graph.k, graph.metric, graph.method) == (40, 3, "euclidean", "exact")
    assert (graph.include_self, graph.seed, graph.report, graph.record) == (False, None, None, None)
    assert_same_neighbors(lists(graph), lists(tonari.knn_graph(stored_points(dtype), 3)))


def test_a_stored_approximate_graph_is_read() -> None:
    graph = tonari.KNNGraph.open(STORED / "clusters-v1")
    assert (graph.n, graph.k, graph.metric, graph.method, graph.seed) == (40, 3, "l1", "nn-descent", 5)
    assert graph.report is not None
    assert (graph.report.target, graph.report.reached, graph.report.estimate.rows) == (0.9, True, 40)
    assert graph.indices[0].tolist() == INDICES
    assert graph.distances[0].tolist() == DISTANCES


@pytest.mark.parametrize("name", ["exact-float32-v1", "exact-float64-v1", "clusters-v1"])
def test_the_stored_files_have_not_changed(name: str) -> None:
    digest = hashlib.sha256()
    for path in sorted((STORED / name).iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    assert digest.hexdigest() == DIGESTS[name]


def test_arrays_are_mapped(tmp_path: Path) -> None:
    graph = small(clustered(100), tmp_path / "graph")
    for part in (graph.indices, graph.distances):
        base: Any = part
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
    np.testing.assert_array_equal(np.load(tmp_path / "graph" / "indices.npy"), graph.indices)


def test_an_unfinished_graph_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(clustered(240), tmp_path / "graph", "exact", 2, monkeypatch)
    with pytest.raises(ValueError, match="graph: this graph is not complete; build it with the same call"):
        tonari.KNNGraph.open(tmp_path / "graph")
    assert Manifest.read(tmp_path / "graph").state == "building"


def test_no_graph(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(FileNotFoundError, match=r"a directory that tonari\.build_graph wrote|manifest"):
            tonari.KNNGraph.open(folder)


_SOURCE = {"n": 40, "d": 3, "dtype": "float32", "sample": "0"}
_REQUEST = {"k": 3, "metric": "euclidean", "method": "exact", "recall": None, "seed": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "its format version is 2, this release reads 1"),
        ({"format": "other"}, "it is of another format"),
        ({"state": "lost"}, "its state is 'lost'"),
        ({"rows": {}}, "its rows is {}"),
        ({"extra": 1}, "extra"),
        ({"source": {**_SOURCE, "n": "40"}}, "its source n is '40'"),
        ({"source": {**_SOURCE, "n": True}}, "its source n is True"),
        ({"source": {"n": 40}}, "it has no source d"),
        ({"source": {**_SOURCE, "dtype": "object"}}, "its source dtype is 'object'"),
        ({"version": True}, "its format version is True"),
        ({"request": {**_REQUEST, "metric": ["l1"]}}, r"its request metric is \['l1'\]"),
        ({"request": {**_REQUEST, "metric": "l7"}}, "l7"),
        ({"request": {**_REQUEST, "k": 0}}, "its request k is 0"),
        ({"request": {**_REQUEST, "weights": [-1]}}, "its request weights"),
        ({"request": {**_REQUEST, "transform": {"shape": [2, 3], "base64": "AAAA"}}}, "buffer size"),
        ({"request": {**_REQUEST, "transform": {"shape": [2, 3]}}}, "base64"),
        ({"method": "<b>x"}, "its method is '<b>x'"),
        ({"method": "nn-descent"}, "its method is 'nn-descent', but its route is 'exact'"),
        ({"plan": {"route": "../../x"}}, "its plan route is '../../x'"),
        ({"plan": {"route": "exact", "rows": 0}}, "its plan rows is 0"),
        ({"state": "building", "plan": {"route": "exact"}}, "it has no plan rows"),
        ({"rows": [[0, 41, 1, 1]]}, "its rows have"),
        ({"rows": [[0, "40", 1, 1]]}, "its rows have"),
        ({"report": {}}, "it has no report target"),
        ({"report": [1]}, r"its report is \[1\]"),
        ({"record": [1]}, r"its record is \[1\]"),
        ({"record": {"title": "build_graph"}}, "it has no record method"),
    ],
)
def test_a_manifest_that_says_something_else(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    shutil.copytree(STORED / "exact-float32-v1", tmp_path / "graph")
    path = tmp_path / "graph" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileFormatError, match=rf"manifest\.json: found \d+ bytes, expected the manifest .*{message}"):
        tonari.KNNGraph.open(tmp_path / "graph")
    result = CliRunner().invoke(main, ["info", str(tmp_path / "graph")])  # no traceback
    assert (result.exit_code, result.stdout) == (1, "")
    assert "manifest.json: found" in result.stderr


@pytest.mark.parametrize("name", ["manifest.json", "indices.npy"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    shutil.copytree(STORED / "exact-float32-v1", tmp_path / "graph")
    (tmp_path / "graph" / name).unlink()
    os.mkfifo(tmp_path / "graph" / name)
    with pytest.raises(FileFormatError, match="this is a device, a pipe or a socket"):
        tonari.KNNGraph.open(tmp_path / "graph")


@pytest.mark.parametrize("name", ["indices.npy", "distances.npy"])
def test_arrays_that_do_not_fit_the_manifest(name: str, tmp_path: Path) -> None:
    shutil.copytree(STORED / "exact-float32-v1", tmp_path / "graph")
    path = tmp_path / "graph" / name
    array = np.load(path)
    for wrong in (array[:-1], array[:, :-1], array.astype(np.float16)):
        np.save(path, wrong)
        with pytest.raises(FileFormatError, match=rf"{name}: found .* expected \S+ of shape \(40, 3\) as the manifest"):
            tonari.KNNGraph.open(tmp_path / "graph")
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(FileFormatError, match=name):
        tonari.KNNGraph.open(tmp_path / "graph")
