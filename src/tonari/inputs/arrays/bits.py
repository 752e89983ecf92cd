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
        Rows in host memory, as for :func:`as_rows`. If the number of bools in a row is not a multiple of 8, the row is
        padded with zero bits, which do not change any distance between bits.
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
        The array is not two-dimensional, is empty (as defined for :func:`as_rows`), is masked, or is on another device.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs.arrays.bits import as_bits
    >>> as_bits(np.ones((1, 12), bool), "points")
    array([[255, 240]], dtype=uint8)
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
        check_shape(tuple(tensor.shape), name)
        packed = tensor[:, ::8].byte() << 7  # as in numpy.packbits, the highest bit is first
        for bit in range(1, 8):
            more = tensor[:, bit::8]
            packed[:, : more.shape[1]] |= more.byte() << (7 - bit)
        tensor = packed
    elif dtype != "uint8":
        raise _no_bits(dtype, name)
    return as_device_rows(tensor, name)


def _no_bits(dtype: str, name: str) -> TypeError:
    return TypeError(
        f"{name}: {dtype} are no bits, expected packed uint8 or bool; use numpy.packbits({name} > 0, axis=1)"
    )


def _packed(bools: npt.NDArray[np.bool_], name: str) -> npt.NDArray[np.uint8]:
    check_shape(bools.shape, name)
    return np.ascontiguousarray(np.packbits(bools, axis=1))  # packbits keeps the Fortran order of an array


def bool_columns(x: Any) -> int | None:
    """Return the number of columns of a bool array, which is the number of bits in a row; None for packed bits.

    >>> bool_columns(np.ones((3, 12), bool)), bool_columns(np.ones((3, 2), np.uint8))
    (12, None)
    """
    array = x if hasattr(x, "dtype") else np.asarray(x)
    shape = tuple(array.shape)
    return shape[1] if name_of_dtype(array) == "bool" and len(shape) == 2 else None


def same_bits(queries: int | None, points: int | None, name: str = "queries") -> None:
    """Raise ValueError if queries and points have different numbers of bits in the same number of bytes.

    Parameters
    ----------
    queries, points : int, optional
        The results of :func:`bool_columns` for the queries and the points.
    name : str
        The name of the queries in the message.
    """
    if queries == points or all(bits is None or bits % 8 == 0 for bits in (queries, points)):
        return
    ours, theirs = ("packed bytes" if bits is None else f"bools of {bits} columns" for bits in (queries, points))
    raise ValueError(
        f"{name} are {ours}, the points {theirs}: both must have the same number of bits; pass bools of the same "
        "number of columns, or numpy.packbits(rows, axis=1) of both"
    )
