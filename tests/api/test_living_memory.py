"""The segments of an Index share its memory: a search of one segment cannot use memory that others hold."""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.api import tuning
from tonari.api.index.segments import balancing
from tonari.core.errors import BudgetExceeded
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cpu.method import ExactOnCpu

D = 16
POINTS = checks.gaussian(60_000, D)
QUERIES = checks.gaussian(50, D, 1)


class Used(list[int]):
    """Records the bytes of each search: of its plan, of lists already found in other segments, and those they hold."""

    asked: Any = None
    lists = 0

    def watch(self, index: tonari.Index, monkeypatch: pytest.MonkeyPatch) -> Used:
        search = ExactOnCpu.search

        def noted(method: Any, queries: Any, prepared: Any, plan: Any, **given: Any) -> Neighbors:
            segments = [part.segment for part in index._state.parts]
            others = [one for one in segments if all(made.prepared is not prepared for made in one.ready.values())]
            if len(others) == len(segments):  # of another search
                return search(method, queries, prepared, plan, **given)
            self.asked, self.lists = queries, self.lists if queries is self.asked else 0
            self.append(plan.total_bytes + self.lists + sum(one.held_bytes for one in others))
            found = search(method, queries, prepared, plan, **given)
            self.lists += sum(part.nbytes for part in found)
            return found

        monkeypatch.setattr(ExactOnCpu, "search", noted)
        return self


def needed(n: int) -> int:
    """Return the smallest memory with which n points stay packed during a small search."""
    return int(tonari.plan(n, len(QUERIES), D, 10, threads=1).resident_memory)


@pytest.mark.parametrize("share", [2.0, 1.0, 0.75, 0.5])
def test_what_all_segments_take_is_within_the_budget(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    least = needed(100)
    memory = int(least + share * (needed(len(POINTS)) - least)) + 2_000_000
    index = tonari.Index(POINTS[:40_000], method="exact", threads=1, memory=memory)
    used = Used().watch(index, monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for begin in (40_000, 53_000):
            index.add(POINTS[begin : begin + 13_000][: 60_000 - begin])
            for m, k in ((50, 10), (1, 3), (20, 40)):
                truth = tonari.search(QUERIES[:m], POINTS[: len(index)], k, method="exact")
                assert_same_neighbors(index.search(QUERIES[:m], k), truth)
                where = np.arange(len(index)) % 2 == 0
                truth = tonari.search(QUERIES[:m], POINTS[: len(index)], k, method="exact", where=where)
                assert_same_neighbors(index.search(QUERIES[:m], k, where=where), truth)
    assert len(index._state.parts) > 1
    assert len(used) >= 12
    assert max(used) <= memory
    held = balancing.held_bytes(index._state.parts)
    assert held <= memory
    if share == 2.0:
        assert held > 40_000 * D  # all points stay packed


@pytest.mark.parametrize("spare", [0, 1_000_000, 3_000_000])
def test_segments_give_up_what_they_hold_for_a_large_search(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    m, k = 500, 50
    with pytest.raises(BudgetExceeded) as told:
        tonari.plan(40_000, m, D, k, threads=1, memory=1, method="exact")
    match = re.search(r"allow at least (\d+)", str(told.value))
    assert match is not None
    memory = int(match[1]) + 24 * m * k + spare
    index = tonari.Index(POINTS[:40_000], method="exact", threads=1, memory="1GB")
    index.add(POINTS[40_000:])
    used = Used().watch(index, monkeypatch)
    for part in index._state.parts:
        assert part.segment.held_bytes > 24 * m * k
        part.segment.call = dataclasses.replace(part.segment.call, memory=memory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for queries, most in ((POINTS[:m], k), (QUERIES, 10)):
            truth = tonari.search(queries, POINTS, most, method="exact")
            assert_same_neighbors(index.search(queries, most), truth)
    assert len(used) == 4
    assert max(used) <= memory


def test_points_are_packed_together_where_memory_holds_no_segments_beside_each_other() -> None:
    points = POINTS[:30_000]
    whole = tonari.plan(len(points), 1, D, 1, threads=1, method="kdtree").total_bytes
    index = tonari.Index(points[:20_000], method="kdtree", threads=1, memory=whole)
    index.add(points[20_000:])
    assert len(index._state.parts) == 1
    assert_same_neighbors(index.search(QUERIES[:1], 1), tonari.search(QUERIES[:1], points, 1))
    before = index._state
    with pytest.raises(BudgetExceeded):
        index.add(points)
    assert index._state is before
    assert_same_neighbors(index.search(QUERIES[:1], 1), tonari.search(QUERIES[:1], points, 1))


def test_a_search_for_which_segments_leave_too_little_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL", 2)
    points = POINTS[:30_000]
    enough = tonari.plan(len(points), 1, D, 1, threads=1, method="kdtree").total_bytes + 400_000
    index = tonari.Index(points[:20_000], method="kdtree", threads=1, memory=enough)
    index.add(points[20_000:])
    assert len(index._state.parts) == 2
    with pytest.raises(BudgetExceeded, match=r"the other segments.*Index\.compact\(\) packs all points as one"):
        index.search(POINTS[:15_000], 3)
