"""Rows of bits: packed in bytes like `numpy.packbits`, or one bool per bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.inputs.arrays.device_rows import as_device_rows, read_tensor
from tonari.inputs.arrays.kinds import check_strided, from_host, kind_of, name_of_dtype, place_of
from tonari.inputs.arrays.rows import as_rows, check_shape


def as_bits(x: Any, name: str) -> npt.NDArray[np.uint8]:
    """Check rows of bits, and return them packed in bytes.

    Parameters
    ----------
    x : array of shape (n, bytes) of uint8, or of shape (n, bits) of bool
        Rows in host memory, as for :func:`as_rows`. The bits of a bool array must fill whole bytes; the caller pads
        queries and points in the same way.
    name : str
        The name of the array in messages.

    Returns
    -------
    C-contiguous uint8 array of shape (n, bytes)
        Shares memory with packed rows unless their layout forbids it.

    Raises
    ------
    TypeError
        The dtype is not supported, or the matrix is sparse.
    ValueError
        The array is not two-dimensional, is empty (as defined for :func:`as_rows`), is masked, is on another device, or
        has bools that do not fill whole bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs.arrays.bits import as_bits
    >>> as_bits(np.ones((1, 16), bool), "points")
    array([[255, 255]], dtype=uint8)
    >>> as_bits(np.ones((1, 2), np.float32), "points")
    Traceback (most recent call last):
    TypeError: points: float32 are no bits, expected packed uint8 or bool; use numpy.packbits(points > 0, axis=1)
    """
    if place_of(x, name) is None:
        if kind_of(x) == "torch":
            check_strided(x, name)
            array, dtype = x, name_of_dtype(x)
        else:
            array = from_host(x, name, "(n, d)")
            dtype = array.dtype.name
        if dtype == "bool":
            return _packed(np.asarray(array), name)
        if dtype != "uint8":
            raise _no_bits(dtype, name)
    return as_rows(x, name)


def as_device_bits(x: Any, name: str) -> Any:
    """Check rows of bits on CUDA, and return them packed in bytes; see :func:`as_bits`.

    Returns
    -------
    uint8 tensor of shape (n, bytes), on x's device, with ``stride(1) == 1``
        Shares memory with packed rows unless their columns are not adjacent in memory.

    Raises
    ------
    TypeError, ValueError
        As :func:`as_bits`.
    """
    tensor = read_tensor(x, name)
    dtype = name_of_dtype(tensor)
    if dtype == "bool":
        _check_whole_bytes(tuple(tensor.shape), name)
        packed = tensor[:, ::8].byte() << 7  # as numpy.packbits, from the highest bit
        for bit in range(1, 8):
            packed |= tensor[:, bit::8].byte() << (7 - bit)
        tensor = packed
    elif dtype != "uint8":
        raise _no_bits(dtype, name)
    return as_device_rows(tensor, name)


def _no_bits(dtype: str, name: str) -> TypeError:
    return TypeError(
        f"{name}: {dtype} are no bits, expected packed uint8 or bool; use numpy.packbits({name} > 0, axis=1)"
    )


def _packed(bools: npt.NDArray[np.bool_], name: str) -> npt.NDArray[np.uint8]:
    _check_whole_bytes(bools.shape, name)
    return np.ascontiguousarray(np.packbits(bools, axis=1))  # packbits keeps the memory order of its input


def _check_whole_bytes(shape: tuple[int, ...], name: str) -> None:
    check_shape(shape, name)
    if shape[1] % 8:
        raise ValueError(
            f"{name}: bool rows of {shape[1]} columns do not fill whole bytes; use numpy.packbits(rows, axis=1), "
            "which adds zeros, for queries and points alike"
        )
