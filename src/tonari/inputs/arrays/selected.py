"""Checks of the input of k-selection: a matrix of values on the CPU or on CUDA, and the lengths of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.inputs.arrays.bfloat16 import NAME, held
from tonari.inputs.arrays.kinds import Kind, check_strided, dtype_name, from_host, kind_of, rank_fix, refuse_masked

SELECTED = ("float32", "float16", "bfloat16", "float64", "int32", "uint8")


def as_values(x: Any, name: str) -> tuple[Any, str]:
    """Check a matrix for k-selection, and return it in the layout that the selection methods read.

    Parameters
    ----------
    x : array of shape (rows, n)
        float32, float16, bfloat16, float64, int32 or uint8; NumPy (bfloat16 of ml_dtypes), lists of floats, or torch
        on the CPU or on CUDA. There may be zero rows, but not zero columns.
    name : str
        The name of the array in messages.

    Returns
    -------
    array of shape (rows, n), and the name of its dtype
        The last axis is contiguous, rows may have any stride, and memory is shared with x unless layout, alignment or
        byte order forbids it. A NumPy array (bfloat16 as its bits, int16), or a tensor on CUDA.

    Raises
    ------
    TypeError
        The dtype is not supported, or the matrix is sparse.
    ValueError
        The array is not two-dimensional, has no columns or at least 2**31, is masked, or is neither on the CPU nor on
        CUDA.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs import as_values
    >>> values, dtype = as_values(np.zeros((4, 6), np.float16)[::2], "values")
    >>> values.shape, dtype
    ((2, 6), 'float16')
    >>> as_values(np.zeros((4, 6), np.int64), "values")
    Traceback (most recent call last):
    TypeError: values: int64 is not supported, only float32, float16, bfloat16, float64, int32, uint8; try \
.astype(numpy.float64), exact for whole numbers up to 2**53
    """
    if kind_of(x) == "torch":
        if x.device.type not in ("cpu", "cuda"):
            raise ValueError(f"{name}: is on {x.device}, expected the CPU or a CUDA device; use .cpu()")
        check_strided(x, name)
        array, dtype = x.detach(), str(x.dtype).removeprefix("torch.")
    else:
        array = from_host(x, name, "(rows, n)")
        dtype = dtype_name(array.dtype.newbyteorder("="))
    if dtype not in SELECTED:
        accepted, fix = ", ".join(SELECTED), _selected_fix(dtype, kind_of(x))
        raise TypeError(f"{name}: {dtype} is not supported, only {accepted}; {fix}")
    shape = tuple(array.shape)
    if len(shape) != 2:
        raise ValueError(f"{name}: expected shape (rows, n), got {shape}{rank_fix(shape)}")
    if shape[1] == 0:
        raise ValueError(f"{name}: shape {shape} has no columns, expected at least one")
    if shape[1] >= 2**31:
        raise ValueError(f"{name}: {shape[1]} columns, expected at most {2**31 - 1}, as indices are int32")
    if kind_of(x) == "torch":
        if array.device.type == "cuda":
            return (array if array.stride(1) == 1 else array.contiguous()), dtype
        array = held(array)
    array = np.require(array, array.dtype.newbyteorder("="), ["ALIGNED"])
    array = array.view(np.int16) if dtype == NAME else array
    return (array if array.strides[1] == array.itemsize else array.copy(order="C")), dtype


def as_lengths(lengths: Any, shape: tuple[int, int], name: str) -> npt.NDArray[np.int64] | None:
    """Check the number of values to use in each row of a matrix of this shape; None, for all values, stays None.

    >>> from tonari.inputs import as_lengths
    >>> as_lengths([3, 0], (2, 3), "lengths")
    array([3, 0])
    >>> as_lengths([3, 4], (2, 3), "lengths")
    Traceback (most recent call last):
    ValueError: lengths: row 1 has length 4; there are 3 columns, so lengths go from 0 to 3
    """
    if lengths is None:
        return None
    rows, n = shape
    refuse_masked(lengths, name)
    array = np.asarray(lengths.detach().cpu() if kind_of(lengths) == "torch" else lengths)
    if array.shape != (rows,):
        raise ValueError(f"{name}: expected shape ({rows},), one number for each row, got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected whole numbers, got {dtype_name(array.dtype)}")
    bad = (array < 0) | (array > n)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"{name}: row {row} has length {array[row]}; there are {n} columns, so lengths go from 0 to {n}"
        )
    return np.ascontiguousarray(array, np.int64)


def _selected_fix(dtype: str, kind: Kind) -> str:
    cast = {"numpy": ".astype(numpy.{})", "torch": ".to(torch.{})"}[kind]
    if dtype in ("bool", "int8", "int16", "uint16"):
        return f"try {cast.format('int32')}"
    if dtype in ("int64", "uint64", "uint32"):
        return f"try {cast.format('float64')}, exact for whole numbers up to 2**53"
    if dtype.startswith("complex"):
        return "complex numbers have no order; select from .real, .imag or their magnitudes"
    return f"try {cast.format('float32' if dtype.startswith('float8') else 'float64')}"
