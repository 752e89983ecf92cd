"""Radius searches in blocks: the same lists as in a single search, within the budget."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

import tonari
from tests.helpers import checks
from tonari.core.errors import BudgetExceeded
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.estimators import tuning
from tonari.estimators.predictions import blocks
from tonari.estimators.predictions.blocks import Budget, lists_within, without_own


@pytest.mark.parametrize("entries", [60, 200, 1 << 21])
@pytest.mark.parametrize("known", [False, True])
def test_blocks_have_the_lists_of_one_search(entries: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "RADIUS_ENTRIES", entries)
    points = checks.duplicates(300, 3)
    index = tonari.Index(points)
    counts = index.radius_count(points, 0.5)
    parts = list(lists_within(index, points, 0.5, Budget(None), counts=counts if known else None))
    assert [part.start for part, _ in parts] == [0, *(part.stop for part, _ in parts[:-1])]
    assert parts[-1][0].stop == 300
    whole = index.radius_search(points, 0.5)
    np.testing.assert_array_equal(np.concatenate([found.indices for _, found in parts]), whole.indices)
    np.testing.assert_array_equal(np.concatenate([found.distances for _, found in parts]), whole.distances)
    np.testing.assert_array_equal(np.concatenate([np.diff(found.indptr) for _, found in parts]), counts)
    for part, found in parts:
        assert len(found.indices) + part.stop - part.start <= max(entries, counts[part].max() + 1)
    assert (len(parts) > 1) == (entries < 1000)


def test_few_points_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    points = checks.gaussian(50, 3)
    index = tonari.Index(points)
    monkeypatch.setattr(tonari.Index, "radius_count", lambda *_, **__: pytest.fail("counted"))
    ((part, found),) = lists_within(index, points, 0.5, Budget(None))
    assert part == slice(0, 50)
    np.testing.assert_array_equal(found.indices, index.radius_search(points, 0.5).indices)


def test_budgets_have_shares() -> None:
    budget = Budget(10_000, fixed=1_000)
    assert budget.searching == 4_500
    assert budget.entries * blocks._ENTRY_BYTES <= 4_500
    assert (Budget(None).searching, Budget(None).entries) == (None, tuning.RADIUS_ENTRIES)
    assert Budget(10, fixed=1_000).searching == 1


def test_a_list_that_does_not_fit_is_refused_with_what_would_be_enough() -> None:
    counts = np.array([3, 1_000, 2])
    with pytest.raises(BudgetExceeded, match="the list of row 1 has 1000 rows within the radius") as raised:
        Budget(10_000, fixed=500).blocks(counts)
    least = raised.value.least
    assert least is not None
    assert Budget(least, fixed=500).blocks(counts) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    with pytest.raises(BudgetExceeded):
        Budget(least - 2, fixed=500).blocks(counts)


def test_copies_of_rows_take_part_of_the_budget() -> None:
    budget = Budget(2 * 96 * 20)
    counts = np.full(10, 2)
    assert [part.stop - part.start for part in budget.blocks(counts)] == [6, 4]
    assert [part.stop - part.start for part in budget.blocks(counts, 200)] == [3, 3, 3, 1]
    assert budget.blocks(np.zeros(0, np.int64)) == []


def test_a_search_that_needs_more_than_its_share_names_the_whole() -> None:
    with (
        pytest.raises(BudgetExceeded, match="memory=100: allow at least 2500: 1000 for searches") as raised,
        Budget(100, fixed=500).refusals(),
    ):
        raise BudgetExceeded("too little", least=1_000)
    assert raised.value.least == 2_500
    with pytest.raises(BudgetExceeded, match=r"^too little$"), Budget(None).refusals():
        raise BudgetExceeded("too little", least=1_000)


def test_own_rows_are_left_out_by_number() -> None:
    found = RadiusNeighbors(np.array([0, 2, 2, 4]), np.array([5, 4, 4, 6]), np.array([0.0, 0.0, 1.0, 2.0]))
    left = without_own(found, 4)
    assert left.indptr.tolist() == [0, 1, 1, 2]
    assert left.indices.tolist() == [5, 4]
    assert left.distances.tolist() == [0.0, 1.0]
