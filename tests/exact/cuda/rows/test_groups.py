"""Groups of points: every column of a tile belongs to one group."""

from __future__ import annotations

from typing import Any

import numpy as np

from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE, group_count, members


def test_each_column_is_in_one_group_of_its_own_tile() -> None:
    for group in GROUP_SIZES:
        per_tile = POINT_TILE // group
        columns = members(np.arange(2 * per_tile), group)
        assert columns.shape == (2 * per_tile, group)
        assert sorted(columns.ravel().tolist()) == list(range(2 * POINT_TILE))
        assert (columns // POINT_TILE == np.arange(2 * per_tile)[:, None] // per_tile).all()
        assert (np.diff(columns, axis=1) > 0).all()


def test_the_last_tile_counts_whole() -> None:
    cases: list[Any] = [(1, 1), (POINT_TILE, 1), (POINT_TILE + 1, 2)]
    for n, tiles in cases:
        for group in GROUP_SIZES:
            assert group_count(n, group) == tiles * POINT_TILE // group
