"""An Index of changed rows or of rows of bits has the same bits after additions and removals as a new one."""

from __future__ import annotations

import copy
import json
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.device_rows import there
from tests.helpers.devices import needs_torch, on_gpu
from tonari.api import tuning
from tonari.core.results.neighbors import Neighbors
from tonari.io import FileFormatError

HAVERSINE = {"metric": "haversine"}
CUBES = {"metric": "minkowski:3"}
WEIGHTED = {"metric": "euclidean", "weights": [2.0, 0.0, 0.3]}
L1 = {"metric": "l1", "weights": [1e-3, 1.0, 5.0]}
HAMMING, JACCARD = {"metric": "hamming"}, {"metric": "jaccard"}
RADII = {"haversine": 0.4, "minkowski:3": 1.5, "euclidean": 2.0, "l1": 3.0, "hamming": 5.0, "jaccard": 0.5}


def rows_of(metric: str, rng: np.random.Generator, n: int) -> Array:
    """Make rows with duplicates and ties."""
    if metric == "haversine":
        return np.stack([rng.integers(-4, 5, n) * np.pi / 8, rng.integers(-9, 9, n) * np.pi / 4], axis=1)
    if metric in ("hamming", "jaccard"):
        return rng.integers(0, 4, (n, 3)).astype(np.uint8)
    return (rng.integers(0, 4, (n, 3)) + 1000).astype(np.float32)


def check(index: tonari.Index, points: Array, ids: Array, given: dict[str, Any], rng: np.random.Generator) -> None:
    """Compare the methods of the Index with those of a new Index of the remaining points."""
    metric = given["metric"]
    queries, anew = rows_of(metric, rng, 7), tonari.Index(points[ids], **given)
    assert (index.ids.tolist(), index.metric, index.weights) == (ids.tolist(), metric, anew.weights)
    assert (index.d, index.dtype) == (points.shape[1], anew.dtype)
    assert index.points.dtype == points.dtype
    assert index.points.tobytes() == points[ids].tobytes()
    for k in (1, 7, len(ids)):
        truth = anew.search(queries, k)
        expected = Neighbors(truth.distances, ids[truth.indices].astype(np.int32))
        assert_same_neighbors(index.search(queries, k), expected)
        chunks = list(index.search_chunks(queries, k, chunk_rows=3))
        assert_same_neighbors(Neighbors(*(np.concatenate(both) for both in zip(*chunks, strict=True))), expected)
    radius = RADII[metric]
    for most in (None, 3):
        within = anew.radius_search(queries, radius, max_neighbors=most)
        found = index.radius_search(queries, radius, max_neighbors=most)
        assert found.indptr.tolist() == within.indptr.tolist()
        assert found.indices.tolist() == ids[within.indices].tolist()
        assert found.distances.dtype == within.distances.dtype
        assert found.distances.tobytes() == within.distances.tobytes()
    assert index.radius_count(queries, radius).tolist() == anew.radius_count(queries, radius).tolist()


@pytest.mark.parametrize("method", ["auto", "kdtree"])
@pytest.mark.parametrize("given", [HAVERSINE, CUBES, WEIGHTED, L1, HAMMING, JACCARD], ids=str)
def test_any_sequence_has_the_bits_of_an_index_made_anew(
    given: dict[str, Any], method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if given in (HAMMING, JACCARD) and method == "kdtree":
        method = "bits"
    monkeypatch.setattr(tuning, "SMALL", 2)  # more segments
    monkeypatch.setattr(tuning, "AROUND", 5)
    rng = np.random.default_rng(1)
    points, given = rows_of(given["metric"], rng, 240), given | {"method": method}
    ids, end = np.arange(100), 100
    index = tonari.Index(points[:100].copy(), **given)
    check(index, points, ids, given, rng)
    parts = around = 0
    for step, count in enumerate([40, 1, 7, 2, 1, 30, 1, 1, 20, 3]):
        new = points[end : end + count].copy()
        assert index.add(new).tolist() == list(range(end, end + count))
        new[:] = 0  # added rows were copied
        ids, end = np.append(ids, np.arange(end, end + count)), end + count
        gone = rng.permutation(ids)[: int(rng.choice([1, 2, 20]))]
        index.remove(gone)
        ids = np.setdiff1d(ids, gone)
        parts = max(parts, len(index._state.parts))
        around = max(around, *(len(part.gone) for part in index._state.parts))
        if step == 3:
            index.save(tmp_path / "saved.index")
            index = tonari.Index.load(tmp_path / "saved.index")
        if step == 5:
            index = copy.deepcopy(copy.copy(index))
        if step == 8:
            index.compact()
        check(index, points, ids, given, rng)
    assert (parts >= 3, around >= 2) == (True, True)
    where = np.zeros(index.next_id, bool)
    where[ids[::3]] = True
    queries = rows_of(given["metric"], rng, 5)
    truth = tonari.search(queries, points[ids[::3]], 4, **given)
    assert_same_neighbors(
        index.search(queries, 4, where=where), Neighbors(truth.distances, ids[::3][truth.indices].astype(np.int32))
    )
    assert len(index.radius_search(queries, RADII[given["metric"]], where=where).indices)


@pytest.mark.parametrize("given", [HAVERSINE, CUBES, WEIGHTED, HAMMING], ids=str)
def test_all_points_may_go_and_others_come(given: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    points = rows_of(given["metric"], rng, 20)
    index = tonari.Index(points, **given)
    dtype = index.dtype
    index.remove(index.ids)
    index.save(tmp_path / "saved.index")
    for again in (tonari.Index.load(tmp_path / "saved.index"), pickle.loads(pickle.dumps(index)), index):
        assert (repr(again), again.dtype, again.points.shape) == (repr(index), dtype, (0, points.shape[1]))
        none = again.radius_search(points[:3], 1.0)
        assert (none.indptr.tolist(), none.distances.dtype) == (
            [0] * 4,
            tonari.search(points, points, 1, **given)[0].dtype,
        )
        assert again.radius_count(points[:3], 1.0).tolist() == [0] * 3
        assert again.add(points[:4]).tolist() == [20, 21, 22, 23]
        assert again.search(points[:4], 4).indices.min() == 20


def test_what_cannot_be_changed_is_refused_and_nothing_changes() -> None:
    rng = np.random.default_rng(3)
    index = tonari.Index(rows_of("haversine", rng, 9), **HAVERSINE)
    with pytest.raises(ValueError, match="points: row 1 has the latitude 2"):
        index.add(np.array([[0.0, 0.0], [2.0, 0.0]]))
    with pytest.raises(ValueError, match="columns"):
        index.add(np.zeros((1, 3)))
    assert index.next_id == 9
    weighted = tonari.Index(np.ones((3, 2)), metric="l1", weights=[1e100, 1])
    for verb in (lambda rows: weighted.add(rows), lambda rows: weighted.search(rows, 1)):
        with pytest.raises(ValueError, match="row 1"):
            verb(np.array([[1.0, 1.0], [1e100, 1.0]]))
    with pytest.raises(ValueError, match="row 0"):
        tonari.Index(np.full((3, 2), 1e100), metric="l1", weights=[1e100, 1])
    assert (weighted.next_id, len(weighted)) == (3, 3)


def test_bools_are_packed_when_they_are_added() -> None:
    rng = np.random.default_rng(4)
    bools = rng.random((40, 24)) < 0.4
    index = tonari.Index(bools[:30], metric="jaccard")
    index.remove([3])
    index.add(bools[30:])
    left = np.delete(np.arange(40), 3)
    assert index.points.tolist() == np.packbits(bools[left], axis=1).tolist()
    truth = tonari.search(bools[:5], bools[left], 6, metric="jaccard")
    assert_same_neighbors(index.search(bools[:5], 6), Neighbors(truth.distances, left[truth.indices].astype(np.int32)))
    with pytest.raises(TypeError, match="are no bits"):
        index.add(np.ones((1, 3), np.float32))
    with pytest.raises(TypeError, match="ids: expected integers"):
        index.remove(1.5)


@pytest.mark.parametrize("weights", [[-1, 1], [1, "2"], "12", [0, 0]], ids=str)
def test_a_file_with_other_weights_is_refused(weights: Any, tmp_path: Path) -> None:
    path = tmp_path / "saved.index"
    tonari.Index(checks.gaussian(9, 2), weights=[1, 2]).save(path)
    whole = path.read_bytes()
    (length,) = struct.unpack("<I", whole[8:12])
    text = json.dumps(json.loads(whole[32 : 32 + length]) | {"weights": weights}).encode().ljust(length)
    path.write_bytes(
        whole[:8] + struct.pack("<II", len(text), zlib.crc32(text)) + bytes(16) + text + whole[32 + length :]
    )
    with pytest.raises(FileFormatError, match=r"not a whole Index file.*weights"):
        tonari.Index.load(path)


def check_on_device(n: int, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    points = rows_of(given["metric"], rng, n)
    queries, radius = rows_of(given["metric"], rng, 3), RADII[given["metric"]]
    for place in (there, np.array):
        index = tonari.Index(place(points[: n // 2]), device="cuda", **given)
        index.add(place(points[n // 2 :]))
        index.remove([1, n - 2])
        ids = np.delete(np.arange(n), [1, n - 2])
        truth = tonari.search(queries, points[ids], 4, **given)
        distances, indices = index.search(place(queries), 4)
        found = Neighbors(*(x if isinstance(x, np.ndarray) else x.cpu().numpy() for x in (distances, indices)))
        assert_same_neighbors(found, Neighbors(truth.distances, ids[truth.indices].astype(np.int32)))
        counts = index.radius_count(place(queries), radius)
        assert counts.tolist() == tonari.radius_count(queries, points[ids], radius, **given).tolist()
        left = index.points if isinstance(index.points, np.ndarray) else index.points.cpu().numpy()
        assert left.tobytes() == points[ids].tobytes()


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_on_a_device_the_bits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 2)
    check_on_device(9, HAVERSINE)


@on_gpu
@pytest.mark.parametrize("given", [HAVERSINE, CUBES, WEIGHTED, L1, HAMMING, JACCARD], ids=str)
def test_on_a_card_the_bits_are_the_same(given: dict[str, Any]) -> None:
    check_on_device(50_000, given)
