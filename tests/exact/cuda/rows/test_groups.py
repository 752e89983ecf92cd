"""Groups of points: every column of a tile is a member of one group."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE, group_count, members


@pytest.mark.parametrize("group", GROUP_SIZES)
def test_each_column_is_in_one_group_of_its_own_tile(group: int) -> None:
    per_tile = POINT_TILE // group
    columns = members(np.arange(2 * per_tile), group)
    assert columns.shape == (2 * per_tile, group)
    assert sorted(columns.ravel().tolist()) == list(range(2 * POINT_TILE))
    assert (columns // POINT_TILE == np.arange(2 * per_tile)[:, None] // per_tile).all()
    assert (np.diff(columns, axis=1) > 0).all()


@pytest.mark.parametrize(("n", "tiles"), [(1, 1), (POINT_TILE, 1), (POINT_TILE + 1, 2)])
def test_the_last_tile_counts_whole(n: int, tiles: int) -> None:
    for group in GROUP_SIZES:
        assert group_count(n, group) == tiles * POINT_TILE // group
