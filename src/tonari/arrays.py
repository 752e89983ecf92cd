"""The border: what callers hand in is checked here once, so that nothing inside has to ask again.

Every message names the argument, says what came and what was expected, and gives the nearest fix.
"""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari import _native

Rows: TypeAlias = npt.NDArray[Any]
Kind: TypeAlias = Literal["numpy", "torch"]

ACCEPTED = tuple(np.dtype(t) for t in (np.float32, np.float16, np.float64, np.uint8, np.int8))

# What k-selection reads. NumPy has no bfloat16; torch has.
SELECTED = ("float32", "float16", "bfloat16", "float64", "int32", "uint8")

# float64 values up to here have squared differences whose sum over any row that fits in memory is finite.
LARGEST_FLOAT64 = 1e150

_UNITS = {"B": 1} | {f"{p}{b}": base**e for e, p in enumerate("KMGT", 1) for b, base in (("B", 1000), ("IB", 1024))}


def as_rows(x: Any, name: str) -> Rows:
    """Check a set of rows and give it as the plain array that the engines read.

    Parameters
    ----------
    x : array of shape (n, d)
        float32, float16, float64, uint8 or int8; NumPy, a torch tensor on the CPU, a memory map, or lists of floats
        (float64). Read-only, strided and big-endian arrays are fine.
    name : str
        What messages call it.

    Returns
    -------
    C-contiguous, aligned array of shape (n, d), of the same dtype in native byte order
        Shares memory with x unless layout, alignment or byte order forbids it.

    Raises
    ------
    TypeError
        Another dtype, or a sparse matrix.
    ValueError
        Not two-dimensional, empty, masked, on another device, with NaN or inf, or beyond 1e150 in magnitude.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.arrays import as_rows
    >>> points = np.zeros((5, 3), np.float32)
    >>> np.shares_memory(as_rows(points, "points"), points)
    True
    >>> as_rows(np.arange(6).reshape(3, 2), "points")
    Traceback (most recent call last):
    TypeError: points: int64 is not searched, only float32, float16, float64, uint8, int8; try \
.astype(numpy.float32), exact for whole numbers up to 2**24
    """
    array = _from_torch(x, name) if kind_of(x) == "torch" else _to_numpy(x, name, "(n, d)")
    dtype = array.dtype.newbyteorder("=")
    if dtype not in ACCEPTED:
        raise TypeError(f"{name}: {_dtype_name(dtype)} is not searched, only {_accepted()}; {_dtype_fix(dtype)}")
    if array.size == 0:
        raise ValueError(f"{name}: shape {array.shape} has nothing in it; at least one row and one column are needed")
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape (n, d), got {array.shape}{_rank_fix(array)}")
    rows = np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])
    if dtype.kind == "f":
        _check_finite(rows, name)
    return rows


def as_values(x: Any, name: str) -> tuple[Any, str]:
    """Check a matrix to select from, and give it as the methods of k-selection read it.

    Parameters
    ----------
    x : array of shape (rows, n)
        float32, float16, float64, int32 or uint8 in NumPy or lists of floats; the same and bfloat16 in torch, on the
        CPU or on CUDA. There may be no rows, but not no columns.
    name : str
        What messages call it.

    Returns
    -------
    array of shape (rows, n), and the name of its dtype
        Last axis contiguous, rows at any distance, memory shared with x unless layout, alignment or byte order forbids
        it. A NumPy array (bfloat16 as its bits, int16), or a tensor on CUDA.

    Raises
    ------
    TypeError
        Another dtype, or a sparse matrix.
    ValueError
        Not two-dimensional, no columns or 2**31 and more, masked, or on a device that is neither.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.arrays import as_values
    >>> values, dtype = as_values(np.zeros((4, 6), np.float16)[::2], "values")
    >>> values.shape, dtype
    ((2, 6), 'float16')
    >>> as_values(np.zeros((4, 6), np.int64), "values")
    Traceback (most recent call last):
    TypeError: values: int64 is not selected from, only float32, float16, bfloat16 (torch), float64, int32, uint8; try \
.astype(numpy.float64), exact for whole numbers up to 2**53
    """
    if kind_of(x) == "torch":
        if x.device.type not in ("cpu", "cuda"):
            raise ValueError(f"{name}: is on {x.device}; k-selection runs on the CPU and on CUDA devices; use .cpu()")
        if str(x.layout) != "torch.strided":
            raise TypeError(f"{name}: sparse input is not read; use .to_dense() if it fits in memory")
        array, dtype = x.detach(), str(x.dtype).removeprefix("torch.")
    else:
        array = _to_numpy(x, name, "(rows, n)")
        dtype = _dtype_name(array.dtype.newbyteorder("="))
    if dtype not in SELECTED:
        accepted = ", ".join(SELECTED).replace("bfloat16", "bfloat16 (torch)")
        raise TypeError(f"{name}: {dtype} is not selected from, only {accepted}; {_selected_fix(dtype, kind_of(x))}")
    shape = tuple(array.shape)
    if len(shape) != 2:
        raise ValueError(f"{name}: expected shape (rows, n), got {shape}{_rank_fix(array)}")
    if shape[1] == 0:
        raise ValueError(f"{name}: shape {shape} has no columns to select from")
    if shape[1] >= 2**31:
        raise ValueError(f"{name}: {shape[1]} columns; indices are int32, so there can be {2**31 - 1} at most")
    if kind_of(x) == "torch":
        if array.device.type == "cuda":
            return (array if array.stride(1) == 1 else array.contiguous()), dtype
        torch = sys.modules["torch"]
        array = array.view(torch.int16).numpy() if dtype == "bfloat16" else array.numpy()
    array = np.require(array, array.dtype.newbyteorder("="), ["ALIGNED"])
    return (array if array.strides[1] == array.itemsize else array.copy(order="C")), dtype


def as_lengths(lengths: Any, shape: tuple[int, int], name: str) -> npt.NDArray[np.int64] | None:
    """Check how many values each row of a (rows, n) matrix has; None, for all, stays None.

    >>> from tonari.arrays import as_lengths
    >>> as_lengths([3, 0], (2, 3), "lengths")
    array([3, 0])
    >>> as_lengths([3, 4], (2, 3), "lengths")
    Traceback (most recent call last):
    ValueError: lengths: row 1 has length 4; there are 3 columns, so lengths go from 0 to 3
    """
    if lengths is None:
        return None
    rows, n = shape
    array = np.asarray(lengths.detach().cpu() if kind_of(lengths) == "torch" else lengths)
    if array.shape != (rows,):
        raise ValueError(f"{name}: expected shape ({rows},), one number for each row, got {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected whole numbers, got {_dtype_name(array.dtype)}")
    bad = (array < 0) | (array > n)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"{name}: row {row} has length {array[row]}; there are {n} columns, so lengths go from 0 to {n}"
        )
    return np.ascontiguousarray(array, np.int64)


def same_width(queries: Rows, points: Rows) -> None:
    """Refuse queries and points that have different numbers of columns.

    >>> import numpy as np
    >>> from tonari.arrays import same_width
    >>> same_width(np.zeros((2, 8)), np.zeros((9, 4)))
    Traceback (most recent call last):
    ValueError: queries of shape (2, 8) and points of shape (9, 4) must have the same number of columns
    """
    if queries.shape[1] != points.shape[1]:
        raise ValueError(
            f"queries of shape {queries.shape} and points of shape {points.shape} must have the same number of columns"
        )


def check_nonnegative(x: Rows, name: str) -> None:
    """Refuse rows with a negative value, which chi2 has no meaning for. x is what :func:`as_rows` gave.

    >>> import numpy as np
    >>> from tonari.arrays import check_nonnegative
    >>> check_nonnegative(np.array([[0.5, 1.0], [2.0, -1.0]]), "points")
    Traceback (most recent call last):
    ValueError: points: row 1 has a negative value (-1.0 in column 1); chi2 compares counts or histograms, which are \
at least 0
    """
    row = _native.first_negative_row(x)
    if row >= 0:
        column = int((x[row] < 0).argmax())
        raise ValueError(
            f"{name}: row {row} has a negative value ({x[row, column]} in column {column}); "
            "chi2 compares counts or histograms, which are at least 0"
        )


def check_k(k: Any, limit: int, *, without_self: bool, noun: str = "point") -> int:
    """Check the number of neighbours, or of whatever else is chosen among `limit`.

    Parameters
    ----------
    k : int
        Python or NumPy integer.
    limit : int
        The largest k there can be: the number of points, less one where a point is not its own neighbour.
    without_self : bool
        Whether self was left out of ``limit``; the message then says so.
    noun : str
        What there are ``limit`` of.

    Raises
    ------
    TypeError
        k is not a whole number; True and 5.0 are not.
    ValueError
        k is less than 1 or more than ``limit``.

    Examples
    --------
    >>> from tonari.arrays import check_k
    >>> check_k(11, 10, without_self=True)
    Traceback (most recent call last):
    ValueError: k=11: the largest k is 10, as there are 11 points and a point is not its own neighbour
    """
    number = _whole_number(k, "k")
    if number < 1:
        raise ValueError(f"k={number}: the smallest k is 1")
    if number > limit:
        count = f"{limit + without_self} {noun}{'s' if limit + without_self > 1 else ''}"
        verb = "is" if limit + without_self == 1 else "are"
        why = " and a point is not its own neighbour" if without_self else ""
        raise ValueError(f"k={number}: the largest k is {limit}, as there {verb} {count}{why}")
    return number


def kind_of(x: Any) -> Kind:
    """Say which library an array belongs to, and so which the results go back to; lists count as NumPy.

    >>> from tonari.arrays import kind_of
    >>> kind_of([[1.0, 2.0]])
    'numpy'
    """
    # A tensor cannot exist before its library is imported, so nothing is imported to find out.
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and isinstance(x, torch.Tensor) else "numpy"


def like(kind: Kind, array: npt.NDArray[Any]) -> Any:
    """Give a result as the kind of array the input was, sharing memory.

    >>> import numpy as np
    >>> from tonari.arrays import like
    >>> like("numpy", np.arange(3))
    array([0, 1, 2])
    """
    return sys.modules["torch"].from_numpy(array) if kind == "torch" else array


def check_device(device: Any) -> None:
    """Refuse every device but "cpu" and "auto".

    >>> from tonari.arrays import check_device
    >>> check_device("cuda:0")
    Traceback (most recent call last):
    ValueError: device='cuda:0': this build has no GPU engine; use device="cpu"
    """
    if isinstance(device, str) and device in ("cpu", "auto"):
        return
    name = str(device)  # a torch.device prints as "cuda:0"
    if name == "cuda" or name.startswith("cuda:"):
        raise ValueError(f'device={name!r}: this build has no GPU engine; use device="cpu"')
    raise ValueError(f'device={device!r}: expected "cpu" or "auto"')


def check_flag(flag: Any, name: str) -> bool:
    """Check an argument that is True or False.

    >>> from tonari.arrays import check_flag
    >>> check_flag("no", "sorted")
    Traceback (most recent call last):
    TypeError: sorted='no': expected True or False, got str
    """
    if not isinstance(flag, bool | np.bool_):
        raise TypeError(f"{name}={flag!r}: expected True or False, got {type(flag).__name__}")
    return bool(flag)


def check_threads(threads: Any) -> int | None:
    """Check a number of threads; None leaves the choice open.

    >>> from tonari.arrays import check_threads
    >>> check_threads(0)
    Traceback (most recent call last):
    ValueError: threads=0: at least 1 is needed; None uses all cores
    """
    if threads is None:
        return None
    number = _whole_number(threads, "threads")
    if number < 1:
        raise ValueError(f"threads={number}: at least 1 is needed; None uses all cores")
    return number


def parse_memory(memory: Any) -> int | None:
    """Read an amount of memory as bytes: an int is bytes, a text has a unit, None stays None.

    Units are kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024) and B, in any case.

    Raises
    ------
    TypeError
        Neither a whole number, nor a text, nor None.
    ValueError
        Less than one byte, no unit, or an unknown one.

    Examples
    --------
    >>> from tonari.arrays import parse_memory
    >>> parse_memory("2GB"), parse_memory("1.5 KiB"), parse_memory(4096), parse_memory(None)
    (2000000000, 1536, 4096, None)
    """
    if memory is None:
        return None
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", memory, re.IGNORECASE | re.ASCII)
        unit = _UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise ValueError(f'memory={memory!r}: expected a number and a unit, such as "2GB" or "512MiB"')
        size = int(float(match[1]) * unit)
    else:
        size = _whole_number(memory, "memory", "a whole number of bytes or a text such as '2GB'")
    if size < 1:
        raise ValueError(f"memory={memory!r}: at least one byte is needed")
    return size


def check_output_path(path: str | os.PathLike[str], suffixes: Collection[str]) -> Path:
    """Check, before any work is done, that a file can be written.

    Parameters
    ----------
    path : str or path
        May exist; it is then replaced at the end.
    suffixes : collection of str
        The endings that are known, such as (".npz",), in lower case.

    Raises
    ------
    ValueError
        Unknown suffix.
    FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError
        The directory is missing, is a file, or cannot be written to; or the path is itself a directory.

    Examples
    --------
    >>> from tonari.arrays import check_output_path
    >>> check_output_path("graph.txt", (".npz",))
    Traceback (most recent call last):
    ValueError: graph.txt: the suffix '.txt' is not known here; expected .npz
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a directory; name a file in it")
    if target.suffix.lower() not in suffixes:
        raise ValueError(
            f"{target}: the suffix {target.suffix!r} is not known here; expected {', '.join(sorted(suffixes))}"
        )
    parent = Path(os.path.realpath(target)).parent  # a symbolic link is written through
    if not parent.exists():
        raise FileNotFoundError(f"{target}: the directory {parent} does not exist; make it first")
    if not parent.is_dir():
        raise NotADirectoryError(f"{target}: {parent} is a file, not a directory")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{target}: the directory {parent} cannot be written to")
    return target


def _to_numpy(x: Any, name: str, shape: str) -> npt.NDArray[Any]:
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError(f"{name}: has masked values; fill them first, with .filled(...)")
    if hasattr(x, "tocsr"):
        raise TypeError(f"{name}: sparse input is not read; use .toarray() if it fits in memory")
    try:
        return np.asarray(x)
    except ValueError as error:  # lists of unequal length
        raise ValueError(f"{name}: cannot be read as an array of shape {shape}: {error}") from None


def _from_torch(x: Any, name: str) -> npt.NDArray[Any]:
    if x.device.type != "cpu":
        raise ValueError(f"{name}: is on {x.device}, and this build searches on the CPU; use .cpu()")
    dtype = str(x.dtype).removeprefix("torch.")
    if dtype not in [accepted.name for accepted in ACCEPTED]:  # bfloat16 for one has no NumPy dtype
        raise TypeError(f"{name}: {dtype} is not searched, only {_accepted()}; try .to(torch.float32)")
    array: npt.NDArray[Any] = x.detach().numpy()
    return array


def _check_finite(rows: Rows, name: str) -> None:
    row = _native.first_nonfinite_row(rows)
    if row >= 0:
        column = int((~np.isfinite(rows[row])).argmax())
        raise ValueError(
            f"{name}: row {row} has a value that is not finite ({rows[row, column]} in column {column}); "
            "drop such rows or fill them first"
        )
    if rows.dtype == np.float64 and max(rows.max(), -rows.min()) > LARGEST_FLOAT64:
        row = int(((rows.min(axis=1) < -LARGEST_FLOAT64) | (rows.max(axis=1) > LARGEST_FLOAT64)).argmax())
        column = int((np.abs(rows[row]) > LARGEST_FLOAT64).argmax())
        raise ValueError(
            f"{name}: row {row} has a value whose square overflows float64 ({rows[row, column]} in column {column}); "
            f"scale the data to within {LARGEST_FLOAT64:.0e}"
        )


def _whole_number(value: Any, name: str, expected: str = "a whole number") -> int:
    if isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: expected {expected}, got a bool")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected {expected}, got {type(value).__name__}") from None


def _accepted() -> str:
    return ", ".join(dtype.name for dtype in ACCEPTED)


def _dtype_name(dtype: np.dtype[Any]) -> str:
    return {"O": "object (mixed or unequal rows)", "U": "text", "S": "bytes", "V": "a record"}.get(
        dtype.kind, dtype.name
    )


def _dtype_fix(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "c":
        part = np.float32 if dtype == np.complex64 else np.float64
        return f"try .view(numpy.{part.__name__}), which makes columns of the real and imaginary parts"
    if dtype.kind == "b":
        return "try .astype(numpy.uint8)"
    if dtype.kind in "iu":
        return "try .astype(numpy.float32), exact for whole numbers up to 2**24"
    if dtype.kind == "f":
        return "try .astype(numpy.float64)"
    return "try .astype(numpy.float32)"


def _selected_fix(dtype: str, kind: Kind) -> str:
    cast = {"numpy": ".astype(numpy.{})", "torch": ".to(torch.{})"}[kind]
    if dtype in ("bool", "int8", "int16", "uint16"):
        return f"try {cast.format('int32')}"
    if dtype in ("int64", "uint64", "uint32"):
        return f"try {cast.format('float64')}, exact for whole numbers up to 2**53"
    if dtype.startswith("complex"):
        return "complex numbers have no order; select from .real, .imag or their magnitudes"
    return f"try {cast.format('float32' if dtype.startswith('float8') else 'float64')}"


def _rank_fix(array: Any) -> str:
    if array.ndim == 1:
        return "; use .reshape(1, -1) for one row, .reshape(-1, 1) for one column"
    if array.ndim > 2:
        return f"; use .reshape({array.shape[0]}, -1) to make each item one row"
    return ""
