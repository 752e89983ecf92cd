"""Rows that can be read once, in order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from tonari.io.tables.sequential import Sequential

ROWS = np.arange(40, dtype=np.float32).reshape(20, 2)


def rows_in(sizes: list[int]) -> Sequential:
    ends = np.cumsum([0, *sizes])
    return Sequential((20, 2), ROWS.dtype, (ROWS[a:b] for a, b in itertools.pairwise(ends)))


@pytest.mark.parametrize("sizes", [[20], [1] * 20, [0, 7, 0, 13], [3, 17]])
@pytest.mark.parametrize("step", [1, 6, 20, 33])
def test_slices_of_any_length_are_the_rows(sizes: list[int], step: int) -> None:
    rows = rows_in(sizes)
    parts = [rows[begin : begin + step] for begin in range(0, 20, step)]
    np.testing.assert_array_equal(np.concatenate(parts), ROWS)
    assert (len(rows), rows.shape, rows.itemsize) == (20, (20, 2), 4)


def test_rows_come_once_and_in_order() -> None:
    rows = rows_in([8, 12])
    rows[:5]
    for again in (slice(0, 5), slice(6, 8)):
        with pytest.raises(IndexError, match=f"row {again.start} is asked for, the next is 5"):
            rows[again]


def test_the_producer_sees_the_end() -> None:
    seen: list[str] = []

    def produce() -> Iterator[np.ndarray]:
        yield ROWS
        seen.append("end")

    rows = Sequential((20, 2), ROWS.dtype, produce())
    rows[:19]
    assert not seen
    rows[19:]
    assert seen == ["end"]


def test_more_rows_than_were_said_are_a_defect() -> None:
    with pytest.raises(AssertionError, match="more than 20 rows"):
        Sequential((20, 2), ROWS.dtype, iter([ROWS, ROWS[:1]]))[:20]
