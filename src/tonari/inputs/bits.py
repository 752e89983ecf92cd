"""Rows of bits: packed in bytes as `numpy.packbits` packs them, or one bool for each bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.inputs.kinds import check_strided, from_host, kind_of, name_of_dtype, place_of
from tonari.inputs.rows import as_rows, check_shape


def as_bits(x: Any, name: str) -> npt.NDArray[np.uint8]:
    """Check rows of bits and return them packed.

    Parameters
    ----------
    x : array of shape (n, bytes) of uint8, or of shape (n, bits) of bool
        In host memory, as for :func:`as_rows`. The bits of a bool array must fill whole bytes: padding is the caller's,
        who knows that queries and points get the same.
    name : str
        What messages call it.

    Returns
    -------
    C-contiguous uint8 array of shape (n, bytes)
        Shares memory with packed rows unless their layout forbids it.

    Raises
    ------
    TypeError
        Another dtype, or a sparse matrix.
    ValueError
        Not two-dimensional, empty, masked, on another device, or bools that do not fill whole bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs.bits import as_bits
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
            raise TypeError(
                f"{name}: {dtype} are no bits, expected packed uint8 or bool; use numpy.packbits({name} > 0, axis=1)"
            )
    return as_rows(x, name)


def _packed(bools: npt.NDArray[np.bool_], name: str) -> npt.NDArray[np.uint8]:
    check_shape(bools.shape, name)
    if bools.shape[1] % 8:
        raise ValueError(
            f"{name}: bool rows of {bools.shape[1]} columns do not fill whole bytes; use numpy.packbits(rows, axis=1), "
            "which adds zeros, for queries and points alike"
        )
    return np.packbits(bools, axis=1)
