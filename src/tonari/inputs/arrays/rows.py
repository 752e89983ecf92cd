"""Checks of points and queries in host memory. Supported arrays are not copied; others raise an error with a fix."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.inputs.arrays.bfloat16 import NAME, dtype_of, held
from tonari.inputs.arrays.kinds import (
    check_strided,
    dtype_name,
    from_host,
    kind_of,
    library_of,
    name_of_dtype,
    place_of,
    rank_fix,
)
from tonari.inputs.arrays.values import check_finite

Rows: TypeAlias = npt.NDArray[Any]

ACCEPTED_NAMES = ("float32", "float16", NAME, "float64", "uint8", "int8")
ACCEPTED = tuple(map(dtype_of, ACCEPTED_NAMES))
# dtypes of NumPy itself, in native byte order
_BUILTIN = frozenset(dtype for dtype in ACCEPTED if dtype.isbuiltin == 1)

# Integer dtypes whose rows are converted to float32.
WHOLE_NAMES = ("int16", "int32", "int64", "uint16", "uint32", "uint64")
LARGEST_WHOLE = 2**24  # largest accepted whole number: float32 represents all whole numbers up to it exactly

QUERIES = "queries"  # the only argument that may be an array without rows

_TO_HOST = {"torch": ".cpu()", "cupy": ".get()", "jax": "numpy.asarray(...)"}


def as_rows(x: Any, name: str, *, check_values: bool = True, threads: int | None = None) -> Rows:
    """Check an array of rows in host memory, and return it as the NumPy array that the search methods read.

    Parameters
    ----------
    x : array of shape (n, d)
        float32, float16, bfloat16, float64, uint8 or int8; NumPy (bfloat16 of ml_dtypes), a torch tensor on the CPU, a
        JAX array on the CPU, a memory map, or lists of floats (float64). Read-only, strided and big-endian arrays are
        fine. Other whole numbers of up to 2**24 in magnitude become float32.
    name : str
        The name of the array in messages. Only "queries" may have no rows.
    check_values : bool
        Whether to check for NaN, inf and values beyond 1e150. If False, the caller checks later: see
        :func:`check_flags`.
    threads : int, optional
        Number of threads that check values. Default: chosen by the amount of work.

    Returns
    -------
    C-contiguous, aligned array of shape (n, d), of the same dtype in native byte order; BFLOAT16 for bfloat16
        Shares memory with x unless dtype, layout, alignment or byte order forbids it.

    Raises
    ------
    TypeError
        The dtype is not supported, or the matrix is sparse.
    ValueError
        The array is not two-dimensional, is empty (no columns, or no rows unless it is "queries"), is masked, is on
        another device, or has NaN, inf or values beyond 1e150 in magnitude, or whole numbers beyond 2**24.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs import as_rows
    >>> points = np.zeros((5, 3), np.float32)
    >>> np.shares_memory(as_rows(points, "points"), points)
    True
    >>> as_rows(np.array([[5, 2**24]]), "points").dtype
    dtype('float32')
    >>> as_rows(np.array([[5, 2**24 + 1]]), "points")
    Traceback (most recent call last):
    ValueError: points: row 0 has the int64 number 16777217 in column 1, expected at most 2**24 in magnitude, since \
float32 does not hold every larger one; pass float64 rows, exact up to 2**53, or subtract an offset
    """
    if type(x) is np.ndarray and x.dtype in _BUILTIN and x.flags.c_contiguous and x.flags.aligned:
        check_shape(x.shape, name)
        rows, dtype = x, x.dtype
    else:
        rows, dtype = _converted(x, name)
    if check_values and dtype.kind not in "iu":
        check_finite(rows, name, threads)
    return rows


def _converted(x: Any, name: str) -> tuple[Rows, np.dtype[Any]]:
    """Convert any other input to the array that :func:`as_rows` returns, and return it with its dtype."""
    place = place_of(x, name)
    if place is not None:
        raise ValueError(f"{name}: is on {place}, expected host memory; use {_TO_HOST[library_of(x)]}")
    array = _from_torch(x, name) if kind_of(x) == "torch" else from_host(x, name, "(n, d)")
    dtype = array.dtype.newbyteorder("=")
    if dtype.name in WHOLE_NAMES:
        check_shape(array.shape, name)
        dtype, array = np.dtype(np.float32), _from_whole(array, name)
    if dtype_of(dtype) not in ACCEPTED:
        raise TypeError(f"{name}: {dtype_name(dtype)} is not supported, only {accepted()}; {fix_for(x, dtype)}")
    check_shape(array.shape, name)
    return held(np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])), dtype


def _from_whole(array: Rows, name: str) -> Rows:
    """Convert whole numbers to float32; raise ValueError for one above 2**24 in magnitude, where it is not exact."""
    if array.dtype.itemsize > 2 and array.size and not -LARGEST_WHOLE <= array.min() <= array.max() <= LARGEST_WHOLE:
        row, column = np.argwhere((array > LARGEST_WHOLE) | (array < -LARGEST_WHOLE))[0].tolist()
        raise too_large(array[row, column], dtype_name(array.dtype), name, row, column)
    return array.astype(np.float32, order="C")


def too_large(value: Any, dtype: str, name: str, row: int, column: int) -> ValueError:
    """Return the error for a whole number above 2**24 in magnitude, which float32 may not represent exactly."""
    return ValueError(
        f"{name}: row {row} has the {dtype} number {int(value)} in column {column}, expected at most 2**24 in "
        "magnitude, since float32 does not hold every larger one; pass float64 rows, exact up to 2**53, or subtract an "
        "offset"
    )


def dtype_of_rows(x: Any) -> str:
    """Return the name of the dtype that :func:`as_rows` gives to the rows of an array."""
    dtype = name_of_dtype(x)
    return "float32" if dtype in WHOLE_NAMES else dtype


def check_shape(shape: tuple[int, ...], name: str) -> None:
    """Check that a shape is (n, d) with d at least 1, and n at least 1 unless the rows are queries."""
    if 0 in shape and not (name == QUERIES and len(shape) == 2 and shape[1]):
        least = "at least one column" if name == QUERIES else "at least one row and one column"
        raise ValueError(f"{name}: shape {shape} is empty, expected {least}")
    if len(shape) != 2:
        raise ValueError(f"{name}: expected shape (n, d), got {shape}{rank_fix(shape)}")


def same_width(queries: Any, points: Any) -> None:
    """Raise ValueError if queries and points have different numbers of columns.

    >>> import numpy as np
    >>> from tonari.inputs import same_width
    >>> same_width(np.zeros((2, 8)), np.zeros((9, 4)))
    Traceback (most recent call last):
    ValueError: queries of shape (2, 8) and points of shape (9, 4) must have the same number of columns
    """
    ours, theirs = tuple(queries.shape), tuple(points.shape)
    if ours[1] != theirs[1]:
        raise ValueError(f"queries of shape {ours} and points of shape {theirs} must have the same number of columns")


def accepted() -> str:
    """Return the names of the supported dtypes, for messages."""
    return ", ".join(ACCEPTED_NAMES)


def _from_torch(x: Any, name: str) -> Rows:
    check_strided(x, name)
    dtype = name_of_dtype(x)
    if dtype not in (
        *ACCEPTED_NAMES,
        *WHOLE_NAMES,
    ):  # checked before the conversion to NumPy, which lacks some dtypes of torch
        fix = "torch.view_as_real(x).flatten(1), which makes columns of the real and imaginary parts"
        fix = "try " + (fix if dtype.startswith("complex") else ".to(torch.float32)")
        raise TypeError(f"{name}: {dtype} is not supported, only {accepted()}; {fix}")
    return held(x.resolve_neg())


def fix_for(x: Any, dtype: np.dtype[Any]) -> str:
    """Suggest, for an error message, how to convert an array whose dtype is not supported."""
    if dtype.kind in "US" or isinstance(x, os.PathLike):
        return "to search the rows of a file, open it first: tonari.io.read(path)"
    if dtype.names:
        names = [column for column in ("DEC", "dec", "RA", "ra") if column in dtype.names]
        if len(names) == 2:
            dec, ra = (f't["{name}"]' for name in names)
            return (
                f"to match catalogues of degrees, use sky(ra={ra}, dec={dec}) of tonari.compat.astropy; for "
                f"metric='haversine', numpy.radians(numpy.stack([{dec}, {ra}], 1))"
            )
        return "use numpy.lib.recfunctions.structured_to_unstructured(t) for its columns as an array"
    if (column := _odd_column(x)) is not None:
        return f"column {column[0]!r} is {column[1]}: leave it out, or make numbers of it"
    if dtype.kind == "O":
        return "expected rows of numbers, all of the same length"
    if not hasattr(x, "astype"):
        return "try numpy.asarray(x, dtype=numpy.float64)"
    return _dtype_fix(dtype)


def _odd_column(x: Any) -> tuple[str, str] | None:
    """Return the name and dtype of a table's first column that is not of a plain numeric dtype.

    Return None if all columns are.
    """
    if not (hasattr(x, "columns") and hasattr(x, "dtypes")):
        return None
    for name, dtype in zip(x.columns, x.dtypes, strict=True):
        kind = str(dtype)
        if kind.lower() not in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64") or (
            kind != kind.lower() and type(x).__module__.startswith("pandas")
        ):
            return str(name), kind
    return None


def _dtype_fix(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "c":
        part = np.float32 if dtype == np.complex64 else np.float64
        return f"try .view(numpy.{part.__name__}), which makes columns of the real and imaginary parts"
    if dtype.kind == "b":
        return "try .astype(numpy.uint8)"
    if dtype.kind == "f":
        return "try .astype(numpy.float64)"
    if dtype == np.dtype("V2"):  # numpy.load returns this dtype for arrays that were saved as bfloat16
        return "if it is bfloat16, use .view(ml_dtypes.bfloat16)"
    return "try .astype(numpy.float32)"
