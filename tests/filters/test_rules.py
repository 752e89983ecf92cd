"""Whether a query may find a point, by its place among those that are searched."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.filters.rules import Rules

MASK = np.random.default_rng(0).random((6, 19)) < 0.5


def test_no_point_is_not_allowed() -> None:
    rules = Rules(m=6, n=19, mask=MASK)
    ids = np.array([[-1, 3, -1]])
    assert rules.allowed(np.array([[2]]), ids).tolist() == [[False, MASK[2, 3], False]]


@pytest.mark.parametrize("packed", [False, True])
def test_parts_of_parts_keep_numbers(packed: bool) -> None:
    mask = np.packbits(MASK, axis=1, bitorder="little") if packed else MASK
    excluded = np.array([0 * 19 + 18, 4 * 19 + 2, 5 * 19 + 18])
    rules = Rules(m=6, n=19, mask=mask, excluded=excluded, own=True)
    part = rules.part(np.array([0, 4, 5]), np.arange(2, 19)).part(np.array([1, 2]), np.array([0, 2, 3, 16]))
    rows, ids = np.array([4, 5]), np.array([2, 4, 5, 18])
    allowed = MASK[np.ix_(rows, ids)] & (rows[:, None] != ids)
    allowed[0, 0] = allowed[1, 3] = False
    assert part.allowed(np.arange(2)[:, None], np.arange(4)[None, :].repeat(2, 0)).tolist() == allowed.tolist()
    assert (part.forbidden() >= (~allowed).sum(axis=1)).all()
    own = part.own_places()
    assert own is not None
    assert own.tolist() == [1, 2]
    assert rules.part(None, np.array([3, 7])).own_places().tolist() == [-1, -1, -1, 0, -1, -1]
