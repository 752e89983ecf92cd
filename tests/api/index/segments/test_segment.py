"""An Index plans a search once, reuses the plan for similar searches, and makes a new plan for different ones."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.core.process.isa import without_amx
from tonari.methods import tuning
from tonari.metrics.reference import brute

POINTS = checks.gaussian(300, 3)


class Planned(list[Any]):
    """Records the plans that an Index requests from its method."""

    def watch(self, index: Any, monkeypatch: pytest.MonkeyPatch) -> Planned:
        method = index._state.only.first.method
        plan = type(method).plan

        def noted(self_: Any, problem: Any, **given: Any) -> Any:
            self.append(plan(self_, problem, **given))
            return self[-1]

        monkeypatch.setattr(type(method), "plan", noted)
        return self


@pytest.mark.parametrize("method", ["exact", "kdtree"])
def test_a_search_like_another_is_not_planned_again(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tonari.Index(POINTS, method=method)
    planned = Planned().watch(index, monkeypatch)
    for m, k, dtype, times in ((1, 5, "f4", 3), (2, 5, "f4", 2), (2, 6, "f4", 2), (2, 6, "f8", 2), (1, 5, "f4", 1)):
        for seed in range(times):
            queries = checks.gaussian(m, 3, seed + 1).astype(dtype)
            assert_same_neighbors(index.search(queries, k), brute(queries, POINTS, k))
    again = [(2, 6)] if method == "kdtree" else []  # for float64 queries the tree is built again, with its own plan
    assert [(plan.m, plan.k) for plan in planned] == [(1, 5), (2, 5), (2, 6), (2, 6), *again]


@pytest.mark.parametrize("d", [3, 40])
def test_points_like_others_are_not_planned_again(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points, others = checks.gaussian(1_000, d), checks.gaussian(1_000, d, seed=1)
    planned = Planned().watch(tonari.Index(points), monkeypatch)
    index = tonari.Index(others)
    assert not planned
    assert_same_neighbors(index.search(points[:3], 4), brute(points[:3], others, 4))
    planned.clear()
    for isa in _native.supported_isas():
        monkeypatch.setenv("TONARI_ISA", isa)
        planned.clear()
        tonari.Index(points)
        assert planned[-1].isa in (isa, without_amx(isa))
    for others, options in ((points, {"memory": "1GB"}), (points[:999], {}), (points, {"threads": 2})):
        planned.clear()
        tonari.Index(others, **options)
        assert planned, options


def test_the_environment_and_threads_are_looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    index = tonari.Index(POINTS, method="exact")
    planned = Planned().watch(index, monkeypatch)
    index.search(POINTS[:1], 2)
    for isa in _native.supported_isas():
        monkeypatch.setenv("TONARI_ISA", isa)
        index.search(POINTS[:1], 2)
        assert planned[-1].isa == isa
    monkeypatch.setenv("TONARI_NUM_THREADS", "3")
    index.search(POINTS[:1], 2)
    assert planned[-1].threads == 3
    index.search(POINTS[:1], 2, threads=2)
    assert planned[-1].threads == 2
    monkeypatch.setenv("TONARI_NUM_THREADS", "none")
    with pytest.raises(ValueError, match="TONARI_NUM_THREADS='none'"):
        index.search(POINTS[:1], 2)


@pytest.mark.parametrize("k", [True, 1.0, "1", np.ones(1)])
def test_what_is_equal_to_an_earlier_k_and_is_none_is_refused(k: Any) -> None:
    index = tonari.Index(POINTS)
    index.search(POINTS[:1], 1)
    with pytest.raises(TypeError, match="k"):
        index.search(POINTS[:1], k)


def test_few_plans_are_kept_and_none_in_copies() -> None:
    index = tonari.Index(POINTS, method="exact")
    for k in range(1, 2 * tuning.KEPT_PLANS):
        index.search(POINTS[:1], k)
        assert 1 <= len(index._state.only.planned) <= tuning.KEPT_PLANS
    assert not copy.copy(index)._state.only.planned
    assert not copy.deepcopy(index)._state.only.planned


def test_plans_that_depend_on_free_processors_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")
    index = tonari.Index(POINTS, method="exact")
    index.search(POINTS, 2)
    assert not index._state.only.planned
    index.search(POINTS, 2, threads=2)
    assert len(index._state.only.planned) == 1


def test_a_call_that_asks_for_nothing_else_has_the_record_of_the_index() -> None:
    """Copying the record takes a fifth of the time of a small search."""
    segment = tonari.Index(POINTS, method="kdtree", threads=2, memory="1GB")._state.only
    for threads in (None, 2):
        assert segment.those(threads).call is segment.call
    assert segment.those(1).call.threads == 1
    assert segment.those(2, taken=9).call.memory == segment.memory - 9


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("threads", [None, 1])
def test_a_search_like_another_checks_values_alone(
    method: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tonari.Index(POINTS, method=method)
    index.search(POINTS[:2], 5, threads=threads)
    monkeypatch.setattr(type(index._state.only), "decided", None)  # any other method would raise
    for queries in (POINTS[5:7], POINTS[[9, 2]]):
        assert_same_neighbors(index.search(queries, 5, threads=threads), brute(queries, POINTS, 5))
    with pytest.raises(ValueError, match="queries: row 1 has a value that is not finite"):
        index.search(np.array([[0, 0, 0], [0, np.nan, 0]], np.float32), 5, threads=threads)
    monkeypatch.undo()
    for queries in (POINTS[::-1][:2], np.asfortranarray(POINTS[7:9])):  # which are converted
        assert_same_neighbors(index.search(queries, 5, threads=threads), brute(queries, POINTS, 5))
    seen = []
    index.search(POINTS[:2], 5, threads=threads, progress=lambda done, total: seen.append(total))
    assert seen
    with pytest.raises(ValueError, match="must have the same number of columns"):
        index.search(POINTS[:2, :2], 5)
    with pytest.raises(ValueError, match="overflows"):
        index.search(np.full((2, 3), 3e38, np.float32), 5)


def test_rows_of_bits_are_checked_in_full() -> None:
    bits = np.random.default_rng(0).integers(0, 256, (50, 4), dtype=np.uint8)
    columns = tonari.Index(np.unpackbits(bits, axis=1)[:, :30].astype(bool), metric="hamming")
    packed = np.packbits(np.unpackbits(bits, axis=1)[:, :30], axis=1)
    columns.search(np.unpackbits(bits, axis=1)[:2, :30].astype(bool), 3)
    with pytest.raises(ValueError, match="bool"):
        columns.search(packed[:2], 3)
