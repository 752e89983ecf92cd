"""Lists to be written: their dtypes follow from those of points and queries, and from the number of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tonari.core.neighbors import Neighbors, value_dtype


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
