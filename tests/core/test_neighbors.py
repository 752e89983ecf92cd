"""Lists of neighbours: dtypes of indices, lists for nobody, and points that are listed twice."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.core.neighbors import first_repeated_row, index_dtype, no_neighbors


@pytest.mark.parametrize(("n", "expected"), [(1, "int32"), (2**31 - 1, "int32"), (2**31, "int64"), (2**40, "int64")])
def test_indices_are_as_wide_as_they_must_be(n: int, expected: str) -> None:
    assert index_dtype(n) == expected
    none = no_neighbors(7, n, "float64")
    assert (none.distances.shape, none.distances.dtype) == ((0, 7), "float64")
    assert (none.indices.shape, none.indices.dtype) == ((0, 7), expected)


@pytest.mark.parametrize(
    ("indices", "row"),
    [
        ([[1, 2, 3], [3, 2, 1]], -1),
        ([[1, 2, 3], [3, 1, 3]], 1),
        ([[0, 1, 0], [3, 3, 3]], 0),
        ([[1, -1, -1], [-1, -1, -1]], -1),
        ([[-1, 4, 4]], 0),
        ([[5], [5]], -1),
    ],
)
def test_the_first_row_that_lists_a_point_twice(indices: list[list[int]], row: int) -> None:
    array = np.array(indices, np.int32)
    before = array.copy()
    assert first_repeated_row(array) == row
    np.testing.assert_array_equal(array, before)


def test_no_rows_repeat_nothing() -> None:
    assert first_repeated_row(np.empty((0, 3), np.int32)) == -1
