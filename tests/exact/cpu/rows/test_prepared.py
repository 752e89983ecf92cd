"""Prepared points on the CPU: which points are packed, kept and released, also by several searches at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core.process.workers import Workers
from tonari.core.results.neighbors import Neighbors
from tonari.exact import PreparedPoints, search_prepared, tuning
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
N, M, D = 4000, 70, 12


@cache
def points(kind: str) -> Array:
    if kind == "mixed":  # easy rows, retried rows, rows with many ties
        parts = (checks.gaussian, checks.tight_far_clusters, checks.duplicates, checks.offset_1e4)
        rows = np.vstack([make(N // 4, D, 0) for make in parts])
        return np.ascontiguousarray(rows[np.random.default_rng(0).permutation(N)])
    return np.random.default_rng(1).integers(0, 256, (N, D)).astype(np.uint8)


@cache
def truth(kind: str, k: int, metric: str = "euclidean") -> Neighbors:
    return brute(points(kind)[:M], points(kind), k, metric)


def packed_slices(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the slices of points that are packed from now on."""
    seen: list[tuple[int, int]] = []
    pack = PreparedPoints.pack

    def noting(self: PreparedPoints, kernel: str, slices: list[tuple[int, int]], *given: Any, **others: Any) -> Any:
        seen.extend(slices)
        return pack(self, kernel, slices, *given, **others)

    monkeypatch.setattr(PreparedPoints, "pack", noting)
    return seen


def test_an_index_packs_no_more_than_its_memory_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHUNK_VALUES", 1 << 16)
    rows = checks.gaussian(60_000, 32)
    query, truth_of_one = rows[:1], tonari.search(rows[:1], rows, 10)
    enough = tonari.plan(len(rows), 1, 32, 10, threads=2).resident_memory
    packed = packed_slices(monkeypatch)
    index = tonari.Index(rows, threads=2, memory=enough - 1_000_000)
    held = sum(end - begin for begin, end in packed)
    assert len(rows) / 2 < held < len(rows)
    assert index._state.only.first.plan.resident_points == held
    packed.clear()
    expected = rf"memory={enough - 1_000_000} bytes hold {held} of 60000 packed points .* memory={enough} keeps all"
    with pytest.warns(UserWarning, match=expected) as warned:
        assert_same_neighbors(index.search(query, 10), truth_of_one)
    assert warned[0].filename == __file__
    for _ in range(2):  # without a second warning
        assert sorted(packed)[0][0] == held
        assert sum(end - begin for begin, end in packed) == len(rows) - held
        packed.clear()
        assert_same_neighbors(index.search(query, 10), truth_of_one)

    packed.clear()
    whole = tonari.Index(rows, threads=2, memory=enough)
    assert_same_neighbors(whole.search(query, 10), truth_of_one)
    assert sum(end - begin for begin, end in packed) == len(rows)


def test_an_index_makes_room_for_a_larger_search_and_packs_again_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHUNK_VALUES", 1 << 16)
    rows = checks.gaussian(60_000, 32)
    index = tonari.Index(rows, threads=2, memory=tonari.plan(60_000, 1, 32, 10, threads=2).resident_memory + 2_000_000)
    packed = packed_slices(monkeypatch)
    assert index._state.only.first.plan.resident
    with pytest.warns(UserWarning, match="of 60000 packed points during a search of 2000 queries with k=40"):
        many = index.search(rows[:2000], 40)
    (prepared,) = (made.prepared for made in index._state.only.ready.values())
    left = prepared.held_bytes
    packed.clear()
    assert_same_neighbors(index.search(rows[:2000], 40), many)
    assert prepared.held_bytes == left
    assert_same_neighbors(many, tonari.search(rows[:2000], rows, 40))
    packed.clear()
    index.search(rows[:1], 10)
    assert prepared.held_bytes > left
    index.search(rows[:1], 10)
    assert sum(end - begin for begin, end in packed) < len(rows)  # once, and only released slices


def test_searches_at_once_pack_the_points_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, at_once = points("mixed"), 4
    bare = PreparedPoints(rows, tonari.plan(N, M, D, 10, threads=1, resident=False, point_chunk=480))
    plan = tonari.plan(N, M, D, 10, threads=1, point_chunk=480)
    assert plan.resident
    packed, pack = packed_slices(monkeypatch), PreparedPoints.pack

    def slowly(*given: Any) -> Any:
        time.sleep(0.1)  # so that all threads arrive before one has packed
        return pack(*given)

    monkeypatch.setattr(PreparedPoints, "pack", slowly)
    together = threading.Barrier(at_once)

    def work() -> Neighbors:
        together.wait()
        return search_prepared(rows[:M], bare, plan)[0]

    with ThreadPoolExecutor(at_once) as pool:
        answers = [pool.submit(work) for _ in range(at_once)]
        for answer in answers:
            assert_same_neighbors(answer.result(), truth("mixed", 10))
    assert sorted(packed) == bare.slices


@pytest.mark.parametrize("self_join", [False, True])
def test_a_search_keeps_what_it_packed_whatever_another_lets_go(
    self_join: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = points("mixed")[:1200]
    n = len(rows)
    plan = tonari.plan(n, n, D, 10, threads=1, point_chunk=480, precisions=("float32",), self_join=self_join)
    prepared = PreparedPoints(rows, plan)
    prepared.hold(plan.kernels["float32"], N, Workers(1))  # few points are packed at their first search
    packed, hold = packed_slices(monkeypatch), PreparedPoints.hold

    def let_go_after(self: PreparedPoints, kernel: str, count: int, workers: Workers) -> Any:
        held = hold(self, kernel, count, workers)
        hold(self, kernel, 0, workers)  # like another search that needs the memory
        return held

    monkeypatch.setattr(PreparedPoints, "hold", let_go_after)
    own = np.arange(n) if self_join else None
    found, _ = search_prepared(rows, prepared, plan, self_ids=own)
    assert_same_neighbors(found, brute(rows, rows, 10, self_ids=own))
    assert prepared.held_bytes == 0
    assert packed == []


def test_a_finer_copy_goes_where_memory_is_short_and_stays_elsewhere() -> None:
    rows = checks.tight_far_clusters(20_000, 64)
    plan = tonari.plan(20_000, 8000, 64, 10, threads=1, adaptive=True)
    if len(plan.precisions) == 1:
        pytest.skip("one precision here")
    prepared = PreparedPoints(rows, plan)
    prepared.hold(plan.kernels["float32"], 20_000, Workers(1))
    small = tonari.plan(20_000, 5, 64, 10, threads=1)
    assert prepared.first_level(small) == len(small.precisions) - 1
    tight = tonari.plan(20_000, 5, 64, 10, threads=1, memory=small.resident_memory)
    found, _ = search_prepared(rows[:5], prepared, tight)
    assert_same_neighbors(found, brute(rows[:5], rows, 10))
    assert prepared.holds(tight.kernels[tight.precisions[0]])
    assert prepared.held_bytes <= tight.packed_bytes


def test_repeated_searches_of_an_index_do_not_disturb_each_other() -> None:
    rows = points("mixed")
    index = tonari.Index(rows, threads=2)
    for k in (10, 80, 10):
        assert_same_neighbors(index.search(rows[:M], k), truth("mixed", k))
        assert_same_neighbors(index.search(rows[:3], k), Neighbors(*(part[:3] for part in truth("mixed", k))))
