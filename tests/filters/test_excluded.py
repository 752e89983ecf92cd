"""Lists of excluded points, as pairs in ascending order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tonari.filters import arguments, excluded


@pytest.mark.parametrize("lengths", [[], [0], [3, 3, 3], [4, 0, 2, 3], [1, 1], [7, 7, 5, 6, 7]])
def test_lists_of_several_lengths_are_sorted(lengths: list[int]) -> None:
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.random.default_rng(0).integers(0, 5, bounds[-1])
    truth = [sorted(ids[a:b].tolist()) for a, b in itertools.pairwise(bounds)]
    excluded._sort_lists(ids, np.diff(bounds))
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(bounds)] == truth


def test_lists_of_other_lengths_are_left() -> None:
    ids = np.array([9, 1, 7, 5, 3, 8, 0])
    excluded._sort_lists(ids, np.array([6, 1, 0, 0]))
    assert ids.tolist() == [9, 1, 7, 5, 3, 8, 0]
    lists = [[9, 1, 7, 5, 3, 8], [0], [], []]
    rules = arguments.Given(exclude=lists).rules(4, 10)
    assert rules is not None
    assert rules.excluded is not None
    assert rules.excluded.pairs.tolist() == [1, 3, 5, 7, 8, 9, 10]
