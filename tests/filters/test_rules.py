"""Rules decide for each query and point, by its place among the searched points, whether the query may find it."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import tonari
from tests.helpers.filter_checks import assert_equal, excluded_of
from tonari.filters import tuning
from tonari.filters.excluded import distinct
from tonari.filters.rules import Rules, are_among

MASK = np.random.default_rng(0).random((6, 19)) < 0.5


def test_no_point_is_not_allowed() -> None:
    rules = Rules(m=6, n=19, mask=MASK)
    ids = np.array([[-1, 3, -1]])
    assert rules.allowed(np.array([[2]]), ids).tolist() == [[False, MASK[2, 3], False]]


@pytest.mark.parametrize("packed", [False, True])
def test_parts_of_parts_keep_numbers(packed: bool) -> None:
    mask = np.packbits(MASK, axis=1, bitorder="little") if packed else MASK
    excluded = excluded_of(np.array([0 * 19 + 18, 4 * 19 + 2, 5 * 19 + 18]), 6, 19)
    rules = Rules(m=6, n=19, mask=mask, excluded=excluded, own=True)
    part = rules.part(np.array([0, 4, 5]), np.arange(2, 19)).part(np.array([1, 2]), np.array([0, 2, 3, 16]))
    rows, ids = np.array([4, 5]), np.array([2, 4, 5, 18])
    allowed = MASK[np.ix_(rows, ids)] & (rows[:, None] != ids)
    allowed[0, 0] = allowed[1, 3] = False
    assert part.allowed(np.arange(2)[:, None], np.arange(4)[None, :].repeat(2, 0)).tolist() == allowed.tolist()
    for room in (1, 1 << 20):
        least, most = part.forbidden_bounds(room)
        assert (least <= (~allowed).sum(axis=1)).all()
        assert (most >= (~allowed).sum(axis=1)).all()
    assert part.table(np.arange(2)).tolist() == allowed.tolist()
    assert part.table(np.array([1])).tolist() == allowed[1:].tolist()
    for wanted in (True, False):
        places, bounds = part.lists(np.arange(2), allowed=wanted)
        assert [places[a:b].tolist() for a, b in itertools.pairwise(bounds)] == [
            np.flatnonzero(row == wanted).tolist() for row in allowed
        ]
    own = part.own_places()
    assert own is not None
    assert own.tolist() == [1, 2]
    assert rules.part(None, np.array([3, 7])).own_places().tolist() == [-1, -1, -1, 0, -1, -1]


@pytest.mark.parametrize("kind", ["bool", "packed", "columns", "backwards"])
def test_masks_of_any_layout(kind: str) -> None:
    mask = np.packbits(MASK, axis=1, bitorder="little") if kind == "packed" else MASK
    mask = np.asfortranarray(mask) if kind == "columns" else mask
    mask = np.ascontiguousarray(mask[::-1])[::-1] if kind == "backwards" else mask
    rows, ids = np.divmod(np.random.default_rng(0).permutation(MASK.size), MASK.shape[1])
    assert Rules(m=6, n=19, mask=mask).allowed(rows, ids).tolist() == MASK[rows, ids].tolist()


@pytest.mark.parametrize("block", [7, 1 << 15])
@pytest.mark.parametrize(("numbers", "some"), [(0, 9), (9, 0), (1, 400), (300, 400), (900, 5), (64, 64)])
def test_numbers_that_are_among_others(numbers: int, some: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "TABLE_BLOCK", block)
    rng = np.random.default_rng(0)
    # many of the values are present; few are, and several of them share their lowest bits with others
    for span in (500, 1 << 40):
        among = np.unique(rng.integers(0, span, some)) << (7 if span > 500 else 0)
        looked_for = rng.integers(0, span, numbers) << (7 if span > 500 else 0)
        looked_for[: some // 2] = among[rng.integers(0, max(1, len(among)), len(looked_for[: some // 2]))]
        assert are_among(looked_for, among).tolist() == np.isin(looked_for, among).tolist()


@pytest.mark.parametrize("block", [3, 1 << 15])
def test_distinct_numbers_in_place_and_in_a_copy(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "TABLE_BLOCK", block)
    rng = np.random.default_rng(0)
    for numbers in ([], [4], [4, 4], [1, 2, 3, 4, 5, 6], [1, 1, 2, 2, 2, 2, 2, 3, 9, 9], rng.integers(0, 20, 50)):
        given = np.array(numbers, np.int64)
        kept = given.copy()
        assert distinct(given).tolist() == np.unique(kept).tolist()
        assert given.tolist() == kept.tolist()
        assert distinct(given, in_place=True).tolist() == np.unique(kept).tolist()


@pytest.mark.parametrize("order", ["ascending", "shuffled", "repeated"])
def test_excluded_pairs_take_less_time_than_the_search(order: str) -> None:
    """A window around each row of a series, in lists of any order, compared with more neighbours that are then
    dropped.
    """
    n, width, rng = 4_000, 50, np.random.default_rng(7)
    steps = np.cumsum(rng.standard_normal(n + 2))
    rows = np.stack([steps[:-2], steps[1:-1], steps[2:]], axis=1)
    lists = [np.arange(max(0, i - width), min(n, i + width + 1)) for i in range(n)]
    lists = lists if order == "ascending" else [rng.permutation(own) for own in lists]
    lists = [np.tile(own, 2) for own in lists] if order == "repeated" else lists
    pairs = np.cumsum([0, *map(len, lists)]), np.concatenate(lists)

    def by_hand() -> tonari.Neighbors:
        near = tonari.search(rows, rows, 3 + 2 * width + 1, threads=1)
        far = np.abs(near.indices - np.arange(n)[:, None]) > width
        first = np.argsort(~far, axis=1, kind="stable")[:, :3]
        return tonari.Neighbors(*(np.take_along_axis(part, first, axis=1) for part in near))

    def by_rule() -> tonari.Neighbors:
        return tonari.search(rows, rows, 3, exclude=pairs, threads=1)

    seconds = []
    for _ in range(5):
        begun = time.perf_counter()
        mine = by_rule()
        between = time.perf_counter()
        truth = by_hand()
        seconds.append((between - begun, time.perf_counter() - between))
    assert_equal(mine, truth)
    rule, hand = np.min(seconds, axis=0)
    assert rule < 2 * hand, f"{rule:.3f} s, by hand {hand:.3f} s"  # 0.5 to 1.1; hashed, 4 to 8


def test_lists_of_excluded_pairs_are_made_without_tables() -> None:
    excluded = excluded_of(np.array([0 * 19 + 18, 4 * 19 + 2, 4 * 19 + 4, 5 * 19 + 3]), 6, 19)
    rules = Rules(m=6, n=19, excluded=excluded, own=True)
    assert rules.only_excluded
    for part, expected in (
        (rules, [[0, 18], [1], [2], [3], [2, 4], [3, 5]]),
        (rules.part(None, np.array([2, 3, 5])), [[], [], [0], [1], [0], [1, 2]]),
        (rules.part(np.array([4, 5]), np.array([18])), [[], []]),
        (rules.part(None, np.empty(0, np.int64)), [[]] * 6),
    ):
        rows = np.arange(len(expected))
        places, bounds = part.lists(rows, allowed=False)
        assert [places[a:b].tolist() for a, b in itertools.pairwise(bounds)] == expected
        table = part.table(rows)
        assert [np.flatnonzero(~row).tolist() for row in table] == expected


@pytest.mark.parametrize("window", [0, 1, 7, 400])
@pytest.mark.parametrize("also", ["nothing", "own", "excluded", "mask", "all"])
def test_a_window_around_the_number_of_a_query(also: str, window: int) -> None:
    n, rng = 23, np.random.default_rng(1)
    mask = rng.random((n, n)) < 0.7 if also in ("mask", "all") else None
    excluded = np.unique(rng.integers(0, n * n, 40)) if also in ("excluded", "all") else None
    lists = None if excluded is None else excluded_of(excluded, n, n)
    rules = Rules(m=n, n=n, mask=mask, excluded=lists, own=also in ("own", "all"), window=min(window, n))
    allowed = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > window
    allowed &= True if mask is None else mask
    if excluded is not None:
        allowed.ravel()[excluded] = False
    assert rules.by_pairs
    for rows, ids in (
        (None, None),
        (np.array([0, 4, 5, 22]), np.array([0, 1, 5, 6, 7, 20, 22])),
        (np.array([3]), None),
    ):
        part = rules.part(rows, ids)
        want = allowed[np.ix_(range(n) if rows is None else rows, range(n) if ids is None else ids)]
        every = np.arange(len(want))
        assert (
            part.allowed(every[:, None], np.arange(want.shape[1])[None].repeat(len(want), 0)).tolist() == want.tolist()
        )
        assert part.table(every).tolist() == want.tolist()
        native = part.as_allowed()
        assert native is not None
        assert native.table(*want.shape).tolist() == want.tolist()
        least, most = part.forbidden_bounds(1 << 20)
        assert (least <= (~want).sum(axis=1)).all()
        assert (most >= (~want).sum(axis=1)).all()
        for wanted in (True, False):
            places, bounds = part.lists(every, allowed=wanted)
            assert [places[a:b].tolist() for a, b in itertools.pairwise(bounds)] == [
                np.flatnonzero(row == wanted).tolist() for row in want
            ]
    assert rules.held_bytes() == Rules(m=n, n=n, mask=mask, excluded=lists).held_bytes()
