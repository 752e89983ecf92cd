"""Checks of points and queries on CUDA, and the conversion of results; nothing is copied to host memory implicitly.

Arrays of CuPy, JAX and other libraries are exchanged through DLPack, which synchronises streams on the device: a reader
waits for earlier writes. All work of this module runs on torch's current stream.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, NamedTuple

import numpy as np

from tonari.inputs.arrays.kinds import Library, check_strided, kind_of, library_of, name_of_dtype, place_of
from tonari.inputs.arrays.rows import ACCEPTED_NAMES, LARGEST_WHOLE, WHOLE_NAMES, accepted, check_shape, too_large


class Side(NamedTuple):
    """The array library and the device of a call's results, which are those of the caller's arrays.

    Attributes
    ----------
    library : "numpy", "torch", "cupy" or "jax"
    place : str or None
        "cuda:0" and so on; None for host memory, where the library is NumPy or torch.
    """

    library: Library
    place: str | None


def side_of(x: Any, name: str) -> Side:
    """Return the library and the device of an array, which are used for the results too.

    >>> from tonari.inputs import side_of
    >>> side_of([[1.0, 2.0]], "queries")
    Side(library='numpy', place=None)
    """
    place = place_of(x, name)
    return Side(kind_of(x) if place is None else library_of(x), place)


def as_device_rows(x: Any, name: str) -> Any:
    """Check the shape and dtype of an array of rows on CUDA, and return it as the tensor that kernels read.

    Values are checked by the kernels that pack the rows; see :func:`tonari.inputs.check_flags`.

    Parameters
    ----------
    x : array of shape (n, d)
        float32, float16, bfloat16, float64, uint8 or int8; a torch tensor, a CuPy or JAX array, or any other array
        that supports DLPack. Other whole numbers of up to 2**24 in magnitude become float32; their values are checked.
    name : str
        The name of the array in messages.

    Returns
    -------
    torch tensor of shape (n, d), on x's device, detached, with ``stride(1) == 1``
        Shares memory with x unless the columns of x are not adjacent in memory.

    Raises
    ------
    TypeError
        The dtype is not supported, or the tensor is sparse.
    ValueError
        The array is not two-dimensional, or is empty in the sense of :func:`tonari.inputs.as_rows`.
    """
    tensor = read_tensor(x, name)
    dtype = name_of_dtype(tensor)
    if dtype in WHOLE_NAMES:
        check_shape(tuple(tensor.shape), name)
        return _from_whole(tensor, name)
    if dtype not in ACCEPTED_NAMES:
        cast = ".to(torch.float32)" if kind_of(x) == "torch" else ".astype('float32')"
        raise TypeError(f"{name}: {dtype} is not supported, only {accepted()}; try {cast}")
    check_shape(tuple(tensor.shape), name)
    if tensor.stride(1) != 1:  # contiguous() would not change the stride of a single column
        tensor = tensor.clone(memory_format=sys.modules["torch"].contiguous_format)
    return tensor


def _from_whole(tensor: Any, name: str) -> Any:
    """Convert whole numbers to float32; raise ValueError for one above 2**24 in magnitude, where it is not exact."""
    wide = tensor.double()  # exact up to 2**53; larger numbers stay larger than 2**24, and are refused
    bad = wide.abs() > LARGEST_WHOLE
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        raise too_large(tensor[row, column].item(), name_of_dtype(tensor), name, row, column)
    return wide.float().contiguous()


def read_tensor(x: Any, name: str) -> Any:
    """Return an array on CUDA as a detached torch tensor; raise TypeError if it is sparse or torch cannot read it."""
    if kind_of(x) == "torch":
        check_strided(x, name)
        return x.detach().resolve_neg()
    try:
        return as_tensor(x)
    except Exception as error:  # the type of this exception depends on the array's library
        raise TypeError(f"{name}: torch cannot read it through DLPack: {error}") from error


def as_tensor(x: Any) -> Any:
    """View an array on CUDA as a torch tensor; torch's current stream waits for earlier writes to the array."""
    return x.detach() if kind_of(x) == "torch" else sys.modules["torch"].from_dlpack(x)


def to_host(x: Any) -> Any:
    """Copy an array on CUDA to host memory, as a torch tensor; return any other object unchanged.

    >>> from tonari.inputs import to_host
    >>> to_host([1.0])
    [1.0]
    """
    return x if place_of(x, "the array") is None else as_tensor(x).cpu()


def hand_back(part: Any, side: Side) -> Any:
    """Convert a result, a NumPy array or a tensor on any device, to the library and the device in `side`.

    The result shares its memory if it is already on that device.

    >>> import numpy as np
    >>> from tonari.inputs import Side, hand_back
    >>> hand_back(np.arange(3), Side("numpy", None))
    array([0, 1, 2])
    """
    if side.library == "numpy":
        return part.cpu().numpy() if kind_of(part) == "torch" else part
    tensor = part if kind_of(part) == "torch" else sys.modules["torch"].from_numpy(part)
    tensor = tensor.to(side.place or "cpu")
    if side.library == "cupy":
        return sys.modules["cupy"].from_dlpack(tensor)
    if side.library == "jax":
        return importlib.import_module("jax.dlpack").from_dlpack(tensor)
    return tensor


def rows_at(rows: Any, ids: Any) -> Any:
    """Return a copy of the rows at the row numbers `ids`, on the device of the rows.

    `ids` is a NumPy array or a tensor, such as a result of :func:`ids_for`.

    >>> import numpy as np
    >>> from tonari.inputs import rows_at
    >>> rows_at(np.array([[0.0], [1.0], [2.0]]), np.array([2, 0])).tolist()
    [[2.0], [0.0]]
    """
    return np.take(rows, ids, axis=0) if isinstance(rows, np.ndarray) else rows.index_select(0, ids_for(rows, ids))


def ids_for(rows: Any, ids: Any) -> Any:
    """Return row numbers as an array or tensor on the device of the rows, ready to index the rows.

    >>> import numpy as np
    >>> from tonari.inputs import ids_for
    >>> ids_for(np.eye(3), np.array([2, 0]))
    array([2, 0])
    """
    if isinstance(rows, np.ndarray):
        return ids
    import torch

    return (torch.from_numpy(ids) if isinstance(ids, np.ndarray) else ids).to(rows.device)
