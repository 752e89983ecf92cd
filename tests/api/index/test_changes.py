"""A changed Index has the same bits as a new Index of the remaining points with their ids."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.device_rows import there
from tests.helpers.devices import HAS_CUDA, needs_torch, on_gpu
from tests.helpers.radius_checks import assert_same_within
from tonari import inputs
from tonari.api import tuning
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors

D = 3
METHODS = ["auto", "exact", "kdtree"]


def tied(rng: np.random.Generator, n: int, dtype: str = "float32") -> Any:
    """Make rows of few distinct values, so there are duplicates and ties; all but small integers are far from 0."""
    rows = rng.integers(0, 4, (n, D)) + (0 if dtype == "uint8" else 1000)
    return rows.astype(dtype)


class Twin:
    """Keeps the points that should remain, by id, and the Index under test."""

    def __init__(self, index: tonari.Index, points: Any, **given: Any) -> None:
        self.index, self.given = index, given
        self.left = dict(enumerate(points))
        self.next_id = len(points)

    @property
    def ids(self) -> Any:
        return np.array(sorted(self.left))

    @property
    def points(self) -> Any:
        return np.array([self.left[at] for at in self.ids])

    def add(self, points: Any, place: Callable[[Any], Any] = np.array) -> None:
        given = place(points)
        ids = self.index.add(given)
        assert ids.dtype == np.int64
        assert ids.tolist() == list(range(self.next_id, self.next_id + len(points)))
        self.left.update(zip(ids.tolist(), points.copy(), strict=True))
        self.next_id += len(points)
        given[:] = 0  # added rows were copied

    def remove(self, ids: Any) -> None:
        self.index.remove(ids)
        for at in ids:
            del self.left[int(at)]

    def check(self, queries: Any, k: int, radius: float, place: Callable[[Any], Any] = np.array) -> None:
        """Compare every search method with that of a new Index."""
        ids, points, index = self.ids, self.points, self.index
        assert (len(index), index.n, index.ids.tolist()) == (len(ids), len(ids), ids.tolist())
        assert here_one(index.points).tobytes() == points.tobytes()
        anew, k = tonari.Index(points, **self.given), min(k, len(ids))
        asked = {"min_similarity" if index.metric == "inner_product" else "radius": radius}
        truth = anew.search(queries, k)
        expected = Neighbors(truth.distances, ids[truth.indices].astype(np.int32))
        found = on_host(index.search(place(queries), k))
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()
        for most in (None, 3, 70):
            within = anew.radius_search(queries, **asked, max_neighbors=most)
            named = RadiusNeighbors(within.indptr, ids[within.indices].astype(np.int32), within.distances)
            got = index.radius_search(place(queries), **asked, max_neighbors=most)
            assert_same_within(RadiusNeighbors(*map(here_one, got)), named)
        counts = here_one(index.radius_count(place(queries), **asked))
        assert counts.tolist() == anew.radius_count(queries, **asked).tolist()


def here_one(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


def on_host(found: Neighbors) -> Neighbors:
    return Neighbors(*map(here_one, found))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_any_sequence_has_the_bits_of_an_index_made_anew(
    method: str, metric: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "kdtree" and metric == "inner_product":
        pytest.skip("no tree bounds inner products")
    monkeypatch.setattr(tuning, "SMALL", 2)  # more segments
    monkeypatch.setattr(tuning, "AROUND", 5)
    rng = np.random.default_rng(1)
    points = tied(rng, 200, dtype)
    given = {"method": method, "metric": metric}
    twin = Twin(tonari.Index(points.copy(), **given), points, **given)
    most_parts = around = 0
    for step in range(30):
        if rng.random() < 0.6:
            twin.add(tied(rng, int(rng.choice([1, 1, 2, 7, 40])), dtype))
        else:
            most = min(len(twin.left) - 1, int(rng.choice([1, 2, 7, 20])))
            twin.remove(rng.permutation(twin.ids)[:most])
        if step == 24:
            twin.index.compact()
            assert len(twin.index._state.parts) == 1
        if step % 10 == 7:
            twin.index.save(tmp_path / "saved.index")
            twin.index = tonari.Index.load(tmp_path / "saved.index")
        if step % 10 == 9:
            twin.index = [copy.copy, copy.deepcopy, pickled][step // 10](twin.index)
        parts = twin.index._state.parts
        most_parts, around = max(most_parts, len(parts)), max(around, *(len(part.gone) for part in parts))
        assert all(len(part.gone) <= 5 for part in parts)
        radius = {"uint8": 9.0}.get(dtype, 3e6 + 9000.0) if metric == "inner_product" else 1.0
        twin.check(tied(rng, int(rng.choice([1, 7])), dtype), int(rng.choice([1, 7, 64, 10**6])), radius)
    assert most_parts >= 3
    assert around >= 2


def pickled(index: tonari.Index) -> tonari.Index:
    copied: tonari.Index = pickle.loads(pickle.dumps(index))
    return copied


@pytest.mark.parametrize("given", [[3, 77], [77, 3], [-1], [2], [5, 5], [5, 8, 5]])
def test_ids_that_are_not_there_are_named_and_nothing_changes(given: list[int]) -> None:
    index = tonari.Index(checks.gaussian(10, D))
    index.add(checks.gaussian(2, D, 1))
    index.remove(2)
    before, ids = index.search(checks.gaussian(3, D, 2), 4), index.ids.tolist()
    bad = next((at for at in given if at in (77, -1, 2)), 5)
    with pytest.raises(ValueError, match=f"{bad}"):
        index.remove(given)
    assert index.ids.tolist() == ids
    assert_same_neighbors(index.search(checks.gaussian(3, D, 2), 4), before)


def test_what_cannot_be_added_or_asked_is_refused() -> None:
    index = tonari.Index(checks.gaussian(10, D))
    for given, error in (
        (checks.gaussian(2, D + 1), ValueError),
        (checks.gaussian(2, D).astype(np.float64), TypeError),
        (np.full((1, D), np.nan, np.float32), ValueError),
        ("points", TypeError),
    ):
        with pytest.raises(error):
            index.add(given)
    for ids in (1.0, [True], [[1]], "1"):
        with pytest.raises(TypeError, match="ids: expected integers"):
            index.remove(ids)
    index.remove([])
    assert index.ids.tolist() == list(range(10))
    index.remove([0, 9])
    with pytest.raises(ValueError, match="k=9"):
        index.search(checks.gaussian(1, D), 9)
    assert index.add(checks.gaussian(1, D)).tolist() == [10]  # id 9 is not reused
    index.remove([10])
    index.compact()
    assert index.add(checks.gaussian(1, D)).tolist() == [11]


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_all_points_may_go_and_others_come(dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    points = tied(rng, 20, dtype)
    index = tonari.Index(points, method="exact")
    index.add(points[:2])
    index.remove(index.ids)
    for way in (lambda x: x, copy.copy, copy.deepcopy, pickled, saved(tmp_path)):
        index = way(index)
        assert repr(index) == f"Index(n=0, d=3, metric='euclidean', dtype={dtype}, method='exact')"
        assert (len(index), index.ids.tolist(), index.next_id, index.points.shape) == (0, [], 22, (0, D))
        assert index.points.dtype == points.dtype
        for given in ({}, {"where": np.ones(22, bool)}):
            with pytest.raises(ValueError, match="k=1: the largest k is 0, as there are 0 points"):
                index.search(points[:3], 1, **given)
            for most in (None, 2):
                none = index.radius_search(points[:3], 1.0, max_neighbors=most, **given)
                assert (none.indptr.tolist(), len(none.indices), len(none.distances)) == ([0] * 4, 0, 0)
                assert none.distances.dtype == index_values(dtype)
            assert index.radius_count(points[:3], 1.0, **given).tolist() == [0] * 3
        index.remove([])
        index.compact()
        with pytest.raises(ValueError, match="21 was removed already"):
            index.remove(21)
        with pytest.raises(ValueError, match="22 was never given"):
            index.remove(22)
    assert index.add(points[:4]).tolist() == [22, 23, 24, 25]
    assert_same_neighbors(
        Neighbors(*index.search(points[:3], 4)),
        Neighbors(*((found := tonari.search(points[:3], points[:4], 4)).distances, found.indices + np.int32(22))),
    )


def index_values(dtype: str) -> Any:
    return np.float64 if dtype == "float64" else np.float32


def saved(folder: Path) -> Callable[[tonari.Index], tonari.Index]:
    def way(index: tonari.Index) -> tonari.Index:
        index.save(folder / "saved.index")
        return tonari.Index.load(folder / "saved.index")

    return way


def test_a_stream_does_not_go_on_with_other_ids(tmp_path: Path) -> None:
    from tonari.streams.journal import Journal, search_facts

    points = checks.gaussian(20, D)
    first, second = tonari.Index(points[1:]), tonari.Index(points)
    second.remove([0])
    kept = Journal(search_facts(first, 5, 2), 0, "")
    assert kept.differences(search_facts(second, 5, 2)) == ["points with other ids"]


def check_on_device(n: int, rounds: int, tmp_path: Path, method: str) -> None:
    """Add, remove and search on CUDA, with tensors and with arrays in host memory."""
    rng = np.random.default_rng(2)
    points = tied(rng, n)
    for place in (there, np.array):
        index = tonari.Index(place(points), device="cuda", method=method)
        twin = Twin(index, points)
        for at in range(rounds):
            twin.add(tied(rng, 3), place)
            twin.remove(twin.ids[at + 1 : at + 3])
            queries = tied(rng, 2)
            truth = tonari.search(queries, twin.points, 4)
            found = on_host(twin.index.search(place(queries), 4))
            assert found.distances.tobytes() == truth.distances.tobytes()
            assert found.indices.tolist() == twin.ids[truth.indices].tolist()
            assert found.indices.dtype == np.int32
            within = tonari.radius_search(queries, twin.points, 1.0)
            got = twin.index.radius_search(place(queries), 1.0)
            assert here_one(got.indices).tolist() == twin.ids[within.indices].tolist()
            counts = here_one(twin.index.radius_count(place(queries), 1.0))
            assert counts.tolist() == np.diff(within.indptr).tolist()
            twin.index.save(tmp_path / "saved.index")
            twin.index = tonari.Index.load(tmp_path / "saved.index")
            if HAS_CUDA:  # when the CPU plays the device, no real device has its name
                assert inputs.place_of(twin.index.points, "points") == inputs.place_of(place(points), "points")
        on_cpu = tonari.Index.load(tmp_path / "saved.index", device="cpu")
        assert on_cpu.devices == ()
        assert_same_neighbors(on_cpu.search(queries, 4), found)


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_on_a_device_the_bits_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 2)
    check_on_device(9, 1, tmp_path, "exact")


@on_gpu
@pytest.mark.parametrize("method", METHODS)
def test_on_a_card_the_bits_are_the_same(method: str, tmp_path: Path) -> None:
    check_on_device(50_000, 4, tmp_path, method)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_no_rows_can_be_added(dtype: str) -> None:
    points = np.arange(12).reshape(4, 3).astype(dtype)
    index = tonari.Index(points)
    added = index.add(points[:0])
    assert (added.shape, added.dtype, len(index)) == ((0,), np.int64, 4)
    assert index.add(points[:1]).tolist() == [4]
    with pytest.raises(ValueError, match="empty"):
        index.add(points[:0, :2])


def test_bools_of_any_width_are_added_and_streamed() -> None:
    rows = np.random.default_rng(0).random((40, 13)) > 0.5
    index = tonari.Index(rows, metric="hamming")
    assert index.add(rows[:0]).shape == (0,)
    truth = index.search(rows, 3)
    for source in (rows, iter([rows[:0], rows[:7], rows[7:]])):
        found = list(index.search_chunks(source, 3))
        assert np.concatenate([part.indices for part in found]).tolist() == truth.indices.tolist()
    assert sum(len(part.indptr) - 1 for part in index.radius_chunks(rows, 2.0, chunk_rows=15)) == 40
    with pytest.raises(ValueError, match="bools of 9 columns, the points bools of 13 columns"):
        list(index.search_chunks(iter([rows[:, :9]]), 3))
    with pytest.raises(TypeError, match="bool is not supported"):
        list(index.search_chunks(iter([rows[:, :3]]), 3))
