"""The dtype BFLOAT16, which represents bfloat16 in NumPy arrays: two bytes per value, the upper half of a float32.

NumPy itself has no bfloat16. Rows of this dtype reach the kernels without a conversion:

    held                     views torch tensors and ml_dtypes arrays as arrays of dtype BFLOAT16 over the same memory
    native/bind/binds.hpp    and cuda/devices.py pass such arrays on as bfloat16
    as_floats                converts blocks of rows to float32, for computations in NumPy

NumPy can copy, slice and index an array of BFLOAT16, but raises an error for arithmetic: call as_floats first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

NAME = "bfloat16"
BFLOAT16 = np.dtype([(NAME, "V2")])


def dtype_of(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the NumPy dtype for a name or dtype; BFLOAT16 for "bfloat16" and for the bfloat16 of ml_dtypes.

    >>> from tonari.inputs import dtype_of
    >>> dtype_of("float16"), dtype_of("bfloat16").itemsize
    (dtype('float16'), 2)
    """
    if isinstance(dtype, np.dtype) and dtype.isbuiltin == 1:
        return dtype
    if isinstance(dtype, str) and dtype == NAME:  # NumPy does not know this name unless ml_dtypes is imported
        return BFLOAT16
    kind = np.dtype(dtype)
    # `isbuiltin` is tested first, because reading `name` takes 2 µs.
    return BFLOAT16 if kind.isbuiltin != 1 and kind.name == NAME else kind


def held(x: Any) -> npt.NDArray[Any]:
    """View an array in host memory as a NumPy array over the same memory; bfloat16 values get dtype BFLOAT16.

    Parameters
    ----------
    x : array, torch tensor, or anything that NumPy converts to an array
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        tensor = x.detach()
        bits = str(tensor.dtype) == f"torch.{NAME}"
        array: npt.NDArray[Any] = tensor.view(torch.int16).numpy().view(BFLOAT16) if bits else tensor.numpy()
        return array
    array = np.asarray(x)
    return array.view(BFLOAT16) if dtype_of(array.dtype) == BFLOAT16 else array


def as_floats(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert an array of BFLOAT16 to float32, for computations in NumPy; return any other array unchanged.

    >>> import numpy as np
    >>> from tonari.inputs import BFLOAT16, as_floats
    >>> as_floats(np.array([0x3F80, 0xC000, 0x7F7F], np.uint16).view(BFLOAT16))
    array([ 1.0000000e+00, -2.0000000e+00,  3.3895314e+38], dtype=float32)
    """
    if rows.dtype != BFLOAT16:
        return rows
    bits = rows.view(np.uint16).astype(np.uint32)
    bits <<= 16
    return bits.view(np.float32)
