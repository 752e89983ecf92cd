"""Checks of rows: valid rows are not copied, and errors name the reason and the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tonari.inputs import (
    ACCEPTED,
    ACCEPTED_NAMES,
    as_rows,
    check_nonnegative,
    dtype_of,
    same_width,
)


@pytest.mark.parametrize(("name", "dtype"), list(zip(ACCEPTED_NAMES, ACCEPTED, strict=True)))
def test_good_rows_are_not_copied(name: str, dtype: Any) -> None:
    x = np.ones((4, 3), name)
    x.flags.writeable = False
    rows = as_rows(x, "points")
    assert type(rows) is np.ndarray
    assert (rows.dtype, rows.itemsize, rows.nbytes) == (dtype, x.itemsize, x.nbytes)
    assert np.shares_memory(rows, x)
    assert np.shares_memory(as_rows(rows, "points"), x)  # chunks of a stream are checked twice


def test_a_memory_map_is_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((5, 2), np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    rows = as_rows(mapped, "points")
    assert type(rows) is np.ndarray
    assert np.shares_memory(rows, mapped)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: x[:, 1:],
        lambda x: x.T,
        np.asfortranarray,
        lambda x: x.astype(">f4"),
        lambda x: x.view(np.matrix),
        lambda x: np.frombuffer(b"?" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
    ],
)
def test_other_layouts_give_the_same_rows(view: Any) -> None:
    x = view(np.arange(24, dtype=np.float32).reshape(6, 4))
    rows = as_rows(x, "points")
    assert rows.flags.c_contiguous
    assert rows.flags.aligned
    assert rows.dtype == np.float32
    assert rows.dtype.isnative
    np.testing.assert_array_equal(rows, np.asarray(x))


WHOLE = ["int16", "int32", "int64", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", [*WHOLE, ">i4", ">u8"])
def test_whole_numbers_become_float32(dtype: str) -> None:
    kind = np.dtype(dtype)
    least, most = max(np.iinfo(kind).min, -(2**24)), min(np.iinfo(kind).max, 2**24)
    given = np.array([[0, 1, least], [most, most - 1, 7]], dtype)
    for x in (given, np.asfortranarray(given), given.repeat(2, axis=1)[:, ::2], given[:0]):
        rows = as_rows(x, "queries")
        assert (rows.dtype, rows.flags.c_contiguous) == (np.float32, True)
        assert rows.astype(object).tolist() == x.astype(object).tolist()
    assert as_rows([[1, 2], [3, 4]], "points").tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", ">i4"])
def test_whole_numbers_that_float32_may_not_hold(dtype: str) -> None:
    kind = np.dtype(dtype)
    for value in {2**24 + 1, 2**24 + 2, np.iinfo(kind).max, np.iinfo(kind).min} - {0}:
        given = np.zeros((5, 3), dtype)
        given[3, 1] = value
        message = rf"points: row 3 has the {kind.newbyteorder('=').name} number {value} in column 1, .*float64 rows"
        with pytest.raises(ValueError, match=message):
            as_rows(given, "points", check_values=False)


def test_lists_of_floats() -> None:
    rows = as_rows([[0.5, 1], [2, 3]], "points")
    assert rows.dtype == np.float64
    assert rows.tolist() == [[0.5, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros((2, 2), bool), TypeError, r"bool .*\.astype\(numpy.uint8\)"),
        (np.zeros((2, 2), np.complex64), TypeError, r"complex64 .*\.view\(numpy.float32\)"),
        (np.zeros((2, 2), np.complex128), TypeError, r"complex128 .*\.view\(numpy.float64\)"),
        (np.zeros((2, 2), np.longdouble), TypeError, r"longdouble|float128 .*\.astype\(numpy.float64\)"),
        (np.array([["a", "b"]]), TypeError, "text is not supported"),
        (np.array([[1.0, None]]), TypeError, "object"),
        (None, TypeError, "object"),
        ([[1.0], [1.0, 2.0]], ValueError, "points: cannot be read as an array of shape"),
        (np.zeros(5, np.float32), ValueError, r"got \(5,\); use .reshape\(1, -1\)"),
        (np.zeros((2, 3, 4), np.float32), ValueError, r"got \(2, 3, 4\); use .reshape\(2, -1\)"),
        (np.float32(3), ValueError, r"expected shape \(n, d\), got \(\)"),
        (np.zeros((0, 4), np.float32), ValueError, r"shape \(0, 4\) is empty"),
        (np.zeros((4, 0), np.float32), ValueError, r"shape \(4, 0\) is empty"),
        ([], ValueError, "is empty"),
        (np.ma.array(np.ones((2, 2)), mask=np.eye(2)), ValueError, r"masked values; .*\.filled"),
    ],
)
def test_refuses(x: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_rows(x, "points")


def test_an_unmasked_array_passes() -> None:
    assert as_rows(np.ma.array(np.ones((2, 2))), "points").tolist() == [[1, 1], [1, 1]]


def test_refuses_sparse() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for matrix in (sparse.eye(3, format="csr"), sparse.coo_array(np.eye(3))):
        with pytest.raises(TypeError, match=r"points: sparse input .*\.toarray"):
            as_rows(matrix, "points")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, "bfloat16", np.float32, np.float64])
def test_names_the_first_row_that_is_not_finite(value: float, dtype: Any) -> None:
    x = np.zeros((50, 7), dtype)
    x[31, 4] = x[31, 6] = x[40, 0] = value
    with pytest.raises(ValueError, match=rf"queries: row 31 has a value that is not finite \({value} in column 4\)"):
        as_rows(x, "queries")


@pytest.mark.parametrize("sign", [-1, 1])
def test_names_the_first_row_whose_squares_overflow(sign: int) -> None:
    x = np.full((6, 5), sign * 1e150)
    assert as_rows(x, "points") is not None
    x[4, 2] = sign * 1.01e150
    with pytest.raises(ValueError, match=r"row 4 has a value whose square overflows float64 .* in column 2.*1e\+150"):
        as_rows(x, "points")


def test_largest_values_of_other_dtypes_pass() -> None:
    for dtype in (np.float16, np.float32, "bfloat16"):
        assert as_rows(np.full((2, 2), ml_dtypes.finfo(dtype).max, dtype), "points").dtype == dtype_of(dtype)


def test_same_width() -> None:
    same_width(np.zeros((2, 3)), np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"queries of shape \(2, 3\) and points of shape \(5, 4\)"):
        same_width(np.zeros((2, 3)), np.zeros((5, 4)))


def test_check_nonnegative() -> None:
    x = np.zeros((9, 4), np.float32)
    x[2, 2] = -0.0
    check_nonnegative(x, "points")
    check_nonnegative(x.astype(np.uint8), "points")
    x[7, 3] = -1e-30
    with pytest.raises(ValueError, match=r"points: row 7 has a negative value .* in column 3"):
        check_nonnegative(x, "points")
    with pytest.raises(ValueError, match="queries: row 0 has a negative value"):
        check_nonnegative(np.full((1, 1), -3, np.int8), "queries")


def test_values_can_be_left_to_others() -> None:
    x = np.full((3, 2), np.nan, np.float32)
    assert as_rows(x, "points", check_values=False) is not None
    with pytest.raises(ValueError, match="row 0"):
        as_rows(x, "points")
