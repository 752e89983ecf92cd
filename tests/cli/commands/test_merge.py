"""tonari merge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari import io
from tonari.cli import main
from tonari.core.results.neighbors import Neighbors
from tonari.graph.knn_graph import KNNGraph

POINTS = checks.gaussian(900, 6)


def lists(graph: KNNGraph) -> Neighbors:
    return Neighbors(graph.distances, graph.indices)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    io.write(tmp_path / "points.fbin", POINTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
    return result


def test_command_merge(folder: Path) -> None:
    for name, part in (("a", POINTS[:500]), ("b", POINTS[500:])):
        io.write(f"{name}.fbin", part)
        run("graph", f"{name}.fbin", "-k", "8", "-o", f"{name}.npz")
    command = ("merge", "a.npz", "b.npz", "a.fbin", "b.fbin", "-o", "both.npz")
    told = json.loads(run(*command, "--json").stdout)
    assert (told["rows"], told["k"], told["method"], told["output"]) == (900, 8, "exact", "both.npz")
    assert_same_neighbors(lists(KNNGraph.load("both.npz")), lists(tonari.knn_graph(POINTS, 8)))
    assert "exists already" in run(*command, code=1).stderr
    assert "is also an input" in run(*command[:-1], "a.npz", "--force", code=2).stderr
    assert "900 rows, k=8" in run(*command, "--force", "--recall", "0.9", "--seed", "1").stdout
    swapped = run("merge", "a.npz", "b.npz", "b.fbin", "a.fbin", "-o", "both.npz", "--force", code=1)
    assert "graph_a has 500 rows, points_a 400: they must be the same points" in swapped.stderr


def test_command_merge_refuses_graphs_in_the_other_order(folder: Path) -> None:
    for name, part in (("a", POINTS[:450]), ("b", POINTS[450:])):
        io.write(f"{name}.fbin", part)
        run("graph", f"{name}.fbin", "-k", "8", "-o", f"{name}.npz")
    refused = run("merge", "b.npz", "a.npz", "a.fbin", "b.fbin", "-o", "both.npz", code=1)
    assert re.match(r"tonari: error: graph_a: row \d+ lists point .*pass the points from which", refused.stderr)
    assert refused.stdout == ""
    assert not (folder / "both.npz").exists()
