"""An Index in a file: the same answers after it, and no damage that goes by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.io import FileFormatError
from tonari.io._atomic import atomic
from tonari.metrics.reference import brute

POINTS = checks.gaussian(300, 4)
QUERIES = checks.gaussian(9, 4, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.npz"


@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
@pytest.mark.parametrize("metric", ["euclidean", "l1"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
def test_it_answers_as_before(method: str, metric: str, dtype: str, path: Path) -> None:
    points = (POINTS * 20 + 60).astype(dtype)
    index = tonari.Index(points, metric=metric, method=method, threads=1, memory="1GB")
    index.save(path)
    again = tonari.Index.load(path, threads=2)
    assert repr(again) == repr(index)
    assert (len(again), again.memory) == (300, None)
    queries = (QUERIES * 20 + 60).astype(dtype)
    for k in (1, 70, 300):
        assert_same_neighbors(again.search(queries, k), brute(queries, points, k, metric), metric=metric)
    assert np.load(path)["points"].tobytes() == points.tobytes()


def test_bfloat16(path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy's bfloat16 is of ml_dtypes")
    points = POINTS.astype(ml_dtypes.bfloat16)
    tonari.Index(points).save(path)
    found = tonari.Index.load(path).search(QUERIES, 5)
    assert_same_neighbors(found, brute(QUERIES, points.astype(np.float32), 5))


def test_an_index_of_a_file_can_be_saved(path: Path) -> None:
    tonari.Index(POINTS, metric="cosine").save(path)
    whole = path.read_bytes()
    tonari.Index.load(path).save(path)
    assert np.load(path)["points"].tobytes() == POINTS.tobytes()
    assert len(path.read_bytes()) == len(whole)


def test_no_damage_goes_by(path: Path) -> None:
    tonari.Index(POINTS[:40]).save(path)
    whole = path.read_bytes()
    truth = brute(QUERIES, POINTS[:40], 3)
    refused = 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            found = tonari.Index.load(path).search(QUERIES, 3)
        except ValueError:
            refused += 1
        else:  # a byte that says nothing of the content, such as a time
            assert_same_neighbors(found, truth)
    assert refused > 0.7 * len(whole) / 7
    for size in range(0, len(whole), 50):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError):
            tonari.Index.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "tonari.KNNGraph"}, "its format is 'tonari.KNNGraph'"),
        ({"version": 2}, "its format version is 2, this release reads 1"),
        ({"metric": 3}, "its metric is 3"),
        ({"k": "5"}, "its k is '5'"),
        ({"dtype": "float64"}, "its points are float32, not float64"),
    ],
    ids=str,
)
def test_something_else_is_refused(changes: dict[str, Any], message: str, path: Path) -> None:
    tonari.Index(POINTS).save(path)
    about = json.loads(str(np.load(path)["about"]))
    with atomic(path) as file:
        np.savez(file, about=np.array(json.dumps(about | changes)), points=POINTS)
    with pytest.raises(FileFormatError, match=message):
        tonari.Index.load(path)


def test_points_that_are_not_finite_are_refused(path: Path) -> None:
    tonari.Index(POINTS).save(path)
    about, spoilt = np.load(path)["about"], POINTS.copy()
    spoilt[7, 1] = np.nan
    with atomic(path) as file:
        np.savez(file, about=about, points=spoilt)
    with pytest.raises(ValueError, match="points: row 7 has a value that is not finite"):
        tonari.Index.load(path)


def test_a_save_that_fails_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tonari.Index(POINTS).save(path)
    before = path.read_bytes()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tonari.Index(POINTS * 2).save(path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_files_that_are_not_there(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tonari.Index.load(path)
    with pytest.raises(FileNotFoundError, match="does not exist, create it first"):
        tonari.Index(POINTS).save(tmp_path / "none" / "index.npz")
    graph = tmp_path / "graph.npz"
    tonari.knn_graph(POINTS, 3).save(graph)
    with pytest.raises(FileFormatError, match="not a whole Index file"):
        tonari.Index.load(graph)
