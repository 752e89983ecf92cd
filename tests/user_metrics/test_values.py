"""Distances of a function or a matrix, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tonari.user_metrics.values import FunctionValues, MatrixValues, strip

ROWS = np.random.default_rng(0).standard_normal((12, 3))
EVERY = slice(0, 12)


def by(function: Any) -> FunctionValues:
    return FunctionValues(function, ROWS, ROWS, "function:mine")


@pytest.mark.parametrize("step", [1, 5, 12, 100])
def test_a_function_gets_a_row_and_a_block(step: int) -> None:
    seen = []

    def mine(a: Any, B: Any) -> Any:
        seen.append((a.shape, len(B)))
        return abs(B - a).sum(axis=1)

    made = strip(by(mine), slice(2, 5), slice(1, 12), step, own=False)
    np.testing.assert_array_equal(made, abs(ROWS[2:5, None] - ROWS[None, 1:12]).sum(axis=2))
    assert {shape for shape, _ in seen} == {(3,)}
    assert max(count for _, count in seen) == min(step, 11)
    assert sum(count for _, count in seen) == 33


@pytest.mark.parametrize("returned", [lambda n: list(range(n)), lambda n: np.arange(n, dtype=np.uint8)])
def test_lists_and_whole_numbers_are_distances(returned: Any) -> None:
    made = strip(by(lambda a, B: returned(len(B))), slice(0, 1), EVERY, 100, own=False)
    assert (made.dtype, made.tolist()) == (np.float64, [list(map(float, range(12)))])


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (0.0, ValueError, r"metric='function:mine': returned the shape \(\) .* expected \(12,\).*for b in B"),
        (np.zeros((12, 3)), ValueError, r"returned the shape \(12, 3\)"),
        (np.zeros((12, 1)), ValueError, r"returned the shape \(12, 1\)"),
        (np.zeros(11), ValueError, r"returned the shape \(11,\)"),
        (np.zeros(12, complex), TypeError, "returned complex128, expected real numbers"),
        (np.full(12, "a"), TypeError, "expected real numbers"),
        (np.full(12, None), TypeError, "returned object"),
        (np.where(np.arange(12) == 7, np.nan, 1.0), ValueError, "the distance of query 2 and point 7 is nan, expected"),
        (np.where(np.arange(12) == 7, -np.inf, 1.0), ValueError, "point 7 is -inf, expected a number, or inf"),
    ],
)
def test_what_is_no_distance_is_refused(returned: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        strip(by(lambda a, B: returned), slice(2, 4), EVERY, 100, own=False)


def test_the_distance_of_a_row_to_itself_may_be_anything() -> None:
    table = np.ones((12, 12))
    np.fill_diagonal(table, np.nan)
    strip(MatrixValues(table), slice(3, 5), slice(2, 12), 4, own=True)
    with pytest.raises(ValueError, match="query 3 and point 3 is nan"):
        strip(MatrixValues(table), slice(3, 5), slice(2, 12), 4, own=False)


def test_a_function_cannot_change_the_rows() -> None:
    def mine(a: Any, B: Any) -> Any:
        B[0] = 0

    with pytest.raises(ValueError, match="read-only"):
        strip(by(mine), slice(0, 1), EVERY, 100, own=False)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("uint8", "float64"), (">f4", "float32")],
)
def test_distances_of_a_matrix_are_float32_or_float64(dtype: str, expected: str) -> None:
    table = MatrixValues(np.arange(6).reshape(2, 3).astype(dtype))
    assert table.dtype == expected
    assert table.block(slice(1, 2), slice(0, 2)).dtype == expected
    assert table.block(slice(1, 2), slice(0, 2)).tolist() == [[3.0, 4.0]]
