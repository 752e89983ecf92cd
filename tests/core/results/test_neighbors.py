"""Lists of neighbours: dtypes of indices, lists for no queries, and points that are listed twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tonari.core.results.neighbors import Neighbors, first_repeated_row, index_dtype, no_neighbors, value_dtype


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


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("float32", "float64"), "float64"),
        ((np.dtype("float64"), np.dtype("uint8")), "float64"),
        ((np.dtype("float32"), np.dtype("float16")), "float32"),
        (("uint8",), "float32"),
        ((), "float32"),
    ],
)
def test_distances_are_float64_if_either_side_is(dtypes: tuple[Any, ...], expected: str) -> None:
    assert value_dtype(*dtypes) == expected
    found = Neighbors.empty(3, 2, 100, *dtypes)
    assert (found.distances.shape, found.distances.dtype) == ((3, 2), expected)
    assert (found.indices.shape, found.indices.dtype) == ((3, 2), "int32")


def test_indices_are_int64_beyond_31_bits() -> None:
    assert Neighbors.empty(1, 1, 2**31 - 1).indices.dtype == "int32"
    assert Neighbors.empty(1, 1, 2**31).indices.dtype == "int64"
