"""Graphs by slabs have the bits of graphs built in memory, for any slabs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array
from tests.helpers.shards import MOST_METRICS, assert_exact, by_shards, contents
from tonari import io


def built(points: Any, k: int, out: Path, **given: Any) -> tonari.KNNGraph:
    return tonari.build_graph(points, k, out / "graph", method="exact", **given)


@pytest.mark.parametrize("k", [1, 7, 27])
@pytest.mark.parametrize(
    ("rows", "route"),
    [(rows, "exact") for rows in (1, 7, 13, 14, 27)] + [(rows, "exact-pairs") for rows in (7, 13, 14, 27)],
)
def test_any_slab_and_any_k(rows: int, k: int, route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, rows, route=route)
    points = checks.duplicates(28, 3)
    assert_exact(built(points, k, tmp_path), points, k)


@pytest.mark.parametrize("route", ["exact", "exact-pairs"])
@pytest.mark.parametrize("rows", [1, 2])
def test_two_rows(rows: int, route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, rows, route=route)
    graph = built(np.array([[0.0], [3.0]], np.float32), 1, tmp_path)
    assert graph.indices.tolist() == [[1], [0]]
    assert graph.distances.tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize("metric", MOST_METRICS)
@pytest.mark.parametrize("rows", [13, 50])
@pytest.mark.parametrize("name", checks.HOSTILE)
def test_hostile_points(name: str, rows: int, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, rows)
    points = checks.in_range(checks.accepted(checks.HOSTILE[name](101, 5, 1), metric), metric)
    assert_exact(built(points, 5, tmp_path, metric=metric), points, 5, metric)


@pytest.mark.parametrize("metric", MOST_METRICS)
@pytest.mark.parametrize("dtype", checks.DTYPES)
@pytest.mark.parametrize("kind", ["array", "file", "object"])
def test_dtypes_and_sources(
    kind: str, dtype: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, 17)
    points = np.abs(30 * checks.gaussian(70, 6)).clip(0, 120).astype(dtype)
    source: Any = points
    if kind == "object":
        source = Ranges(points)
    elif kind == "file" and dtype != "bfloat16":  # which no file has
        source = tmp_path / "points.npy"
        np.save(source, points)
    assert_exact(built(source, 4, tmp_path, metric=metric), points, 4, metric)


class Ranges:
    """Makes rows, and records the requested ranges."""

    def __init__(self, rows: Array) -> None:
        self._rows, self.shape = rows, rows.shape
        self.asked: set[Any] = set()

    def rows(self, begin: int, end: int) -> Array:
        self.asked.add((begin, end))
        return self._rows[begin:end].copy()


@pytest.mark.parametrize("sizes", [(100,), (1, 99), (40, 1, 1, 58), (33, 33, 34)])
@pytest.mark.parametrize("suffix", [".npy", ".fbin", ".fvecs"])
def test_several_files(suffix: str, sizes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 23)
    points = checks.gaussian(100, 4)
    paths = [tmp_path / f"{at}{suffix}" for at in range(len(sizes))]
    for path, part in zip(paths, np.split(points, np.cumsum(sizes)[:-1]), strict=True):
        io.write(path, part)
    assert_exact(built(paths, 5, tmp_path), points, 5)


@pytest.mark.parametrize("memory", ["6MB", "7MB", "9MB", "100MB"])
def test_memory_decides_the_slabs_and_not_the_bits(memory: str, tmp_path: Path) -> None:
    points = checks.tight_far_clusters(4000, 20)
    assert_exact(built(points, 7, tmp_path, memory=memory, threads=1), points, 7)


@pytest.mark.parametrize("row", [0, 22, 23, 99])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named_by_its_row(
    value: float, row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_shards(monkeypatch, 23)
    points = checks.gaussian(100, 4)
    points[row, 2] = value
    with pytest.raises(ValueError, match=rf"points: row {row} has a value that is not finite"):
        built(points, 5, tmp_path)
    points[row, 2] = 0
    assert_exact(built(points, 5, tmp_path, resume=False), points, 5)


def test_a_negative_value_is_named_by_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 23)
    points = np.abs(checks.gaussian(100, 4))
    points[57, 1] = -1
    with pytest.raises(ValueError, match=r"points: row 57 has a negative value"):
        built(points, 5, tmp_path, metric="chi2")


def test_nothing_but_the_graph_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 30)
    built(checks.gaussian(100, 4), 5, tmp_path)
    assert contents(tmp_path / "graph") == ["distances.npy", "indices.npy", "lock", "manifest.json"]
    manifest = tonari.graph.files.directory.Manifest.read(tmp_path / "graph")
    assert [part[:2] for part in manifest.rows] == [[0, 30], [30, 60], [60, 90], [90, 100]]
    assert (manifest.state, manifest.method, manifest.report) == ("complete", "exact", None)
