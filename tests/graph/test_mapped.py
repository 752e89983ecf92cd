"""Graphs in a directory are used like graphs in memory: exports, recall, files, and added points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core.errors import BudgetExceeded
from tonari.core.process import host_memory
from tonari.graph.building import merging

N, D, K = 600, 8, 4


@pytest.fixture
def graph(tmp_path: Path) -> tonari.KNNGraph:
    """Make a graph in a directory, of the first points."""
    return tonari.build_graph(_points()[:-100], K, tmp_path / "graph")


def _points() -> np.ndarray:
    return checks.gaussian(N, D)


def test_a_mapped_graph_is_used_like_any_other(graph: tonari.KNNGraph, tmp_path: Path) -> None:
    assert isinstance(graph.indices, np.memmap)
    truth = tonari.knn_graph(_points()[:-100], K, method="exact")
    assert (graph.to_csr() != truth.to_csr()).nnz == 0
    assert graph.recall(_points()[:-100]).by_index == 1
    graph.save(tmp_path / "a.npz")
    truth.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("count", [2, 100])
def test_points_are_added_in_memory(graph: tonari.KNNGraph, count: int) -> None:
    points = _points()[: N - 100 + count]
    made = graph.add(points[:-count], points[-count:])
    truth = tonari.knn_graph(points, K, method="exact")
    np.testing.assert_array_equal(made.indices, truth.indices)
    np.testing.assert_array_equal(made.distances, truth.distances)
    assert not isinstance(made.indices, np.memmap)


def test_too_many_points_are_told_where_to_go(
    graph: tonari.KNNGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = _points()
    needed = N * (D * 4 + 2 * K * 8)
    monkeypatch.setattr(merging, "free_host_memory", lambda: needed - 1)
    said = (
        rf"{needed} bytes without the search, but {needed - 1} are free; .* tonari.build_graph\(\[points, new_points\]"
    )
    with pytest.raises(BudgetExceeded, match=said):
        graph.add(points[:-100], points[-100:])
    tonari.knn_graph(points[:-100], K).add(points[:-100], points[-100:])  # a graph in memory needs no memory limit
    for name, rows in (("old.npy", points[:-100]), ("new.npy", points[-100:])):
        np.save(tmp_path / name, rows)
    made = tonari.build_graph([tmp_path / "old.npy", tmp_path / "new.npy"], K, tmp_path / "all")
    np.testing.assert_array_equal(made.indices, tonari.knn_graph(points, K).indices)
    monkeypatch.setattr(merging, "free_host_memory", lambda: needed)
    assert graph.add(points[:-100], points[-100:]).n == N


def test_free_memory_counts_what_files_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal: 9 kB\nMemFree:           1 kB\nMemAvailable:      7 kB\n")
    monkeypatch.setattr(host_memory, "_MEMINFO", told)
    assert host_memory.free_host_memory() == 7 << 10
    monkeypatch.setattr(host_memory, "_MEMINFO", tmp_path / "none")
    assert host_memory.free_host_memory() > 1 << 20
