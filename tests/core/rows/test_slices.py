"""Ranges are divided into slices."""

from __future__ import annotations

import pytest

from tonari.core.rows.slices import cut


@pytest.mark.parametrize("count", [0, 1, 2, 7, 12])
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_slices_are_the_range_in_order(count: int, size: int) -> None:
    parts = cut(count, size)
    assert [at for part in parts for at in range(part.start, part.stop)] == list(range(count))
    assert all(part.stop - part.start == size for part in parts[:-1])
