"""The library and the device of an array, determined without importing a library.

An array of torch, CuPy or JAX cannot exist unless its library has been imported, so a look into ``sys.modules``
suffices.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core.process.caches import cached
from tonari.inputs.arrays.bfloat16 import BFLOAT16, NAME

Kind: TypeAlias = Literal["numpy", "torch"]
Library: TypeAlias = Literal["numpy", "torch", "cupy", "jax"]

# Device types in DLPack (dlpack.h): host memory, including pinned memory; and CUDA, including managed memory.
_DLPACK_HOST = (1, 3)
_DLPACK_CUDA = (2, 13)

_BFLOAT16 = str(BFLOAT16)

# Column types of pyarrow that convert to numbers in NumPy.
_ARROW_NUMBERS = ("halffloat", "float", "double", "uint8", "int8", "int16", "int32", "int64")


def kind_of(x: Any) -> Kind:
    """Return "torch" for a torch tensor, else "numpy", which includes lists.

    >>> from tonari.inputs import kind_of
    >>> kind_of([[1.0, 2.0]])
    'numpy'
    """
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and isinstance(x, torch.Tensor) else "numpy"


def like(kind: Kind, array: npt.NDArray[Any]) -> Any:
    """Return a NumPy array as a torch tensor over the same memory if `kind` is "torch", else unchanged.

    >>> import numpy as np
    >>> from tonari.inputs import like
    >>> like("numpy", np.arange(3))
    array([0, 1, 2])
    """
    return sys.modules["torch"].from_numpy(array) if kind == "torch" else array


def library_of(x: Any) -> Library:
    """Return the library in which results for an array are returned; "torch" for an unknown library on CUDA.

    >>> from tonari.inputs.arrays.kinds import library_of
    >>> library_of([[1.0, 2.0]])
    'numpy'
    """
    if kind_of(x) == "torch":
        return "torch"
    cupy, jax = sys.modules.get("cupy"), sys.modules.get("jax")
    if cupy is not None and isinstance(x, cupy.ndarray):
        return "cupy"
    if jax is not None and isinstance(x, jax.Array):
        return "jax"
    return "numpy" if place_of(x, "the array") is None else "torch"


def place_of(x: Any, name: str) -> str | None:
    """Return the device of an array: "cuda:0", "cuda:1" and so on; None for host memory.

    Raises
    ------
    ValueError
        The array is on a device of another kind, or its library does not report the device.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs import place_of
    >>> place_of(np.zeros(3), "points") is None
    True
    """
    if kind_of(x) == "torch":
        if x.device.type == "meta":
            raise ValueError(f"{name}: is on meta, which holds no values, expected host memory or a CUDA device")
        if x.device.type not in ("cpu", "cuda"):
            raise ValueError(f"{name}: is on {x.device}, expected host memory or a CUDA device; use .cpu()")
        return str(x.device) if x.device.type == "cuda" else None
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    try:
        kind, number = x.__dlpack_device__()
    # any exception: JAX, for example, raises one for an array that is sharded over several devices
    except Exception as error:
        raise ValueError(f"{name}: its library does not tell on which device it is: {error}") from error
    if kind in _DLPACK_CUDA:
        return f"cuda:{int(number)}"
    if kind not in _DLPACK_HOST:
        raise ValueError(
            f"{name}: is on device {int(number)} of DLPack's type {int(kind)}, expected host memory or a CUDA device; "
            "copy it to one of them"
        )
    return None


def from_host(x: Any, name: str, shape: str) -> npt.NDArray[Any]:
    """Convert an object in host memory to a NumPy array, or raise an error with a fix; messages name `shape`."""
    refuse_masked(x, name)
    if hasattr(x, "tocsr"):
        raise TypeError(f"{name}: sparse input is not supported; use .toarray() if it fits in memory")
    if hasattr(x, "obsm") and hasattr(x, "X"):
        raise TypeError(
            f'{name}: is an AnnData, expected an array of shape {shape}; use adata.obsm["X_pca"], or adata.X'
        )
    if hasattr(x, "collect") and hasattr(x, "collect_schema"):
        raise TypeError(f"{name}: is a LazyFrame, expected an array of shape {shape}; use .collect()")
    library = type(x).__module__.partition(".")[0]
    if library == "pyarrow":
        fix = _fix_of_table(x) if hasattr(x, "schema") else "numpy.stack(column.to_numpy())"
        raise TypeError(f"{name}: is a {type(x).__name__} of pyarrow, expected an array of shape {shape}; use {fix}")
    if library in ("pandas", "polars") and hasattr(x, "columns"):
        return np.asarray(x.to_numpy())  # to_numpy converts all columns to a common dtype
    try:
        return np.asarray(x)
    except ValueError as error:  # NumPy refuses lists of unequal lengths
        raise ValueError(f"{name}: cannot be read as an array of shape {shape}: {error}") from None


def _fix_of_table(table: Any) -> str:
    """Suggest how to convert a pyarrow table to an array, depending on its first column that is not numeric."""
    for field in table.schema:
        kind = str(field.type)
        if kind.startswith(("list<", "large_list<", "fixed_size_list<")):
            return f"numpy.stack(table[{field.name!r}].to_numpy()), which makes rows of the lists of a column"
        if kind not in _ARROW_NUMBERS:
            return (
                f"table.drop_columns([{field.name!r}]).to_pandas().to_numpy(), as column {field.name!r} is {kind}, or "
                "make numbers of it"
            )
    return "table.to_pandas().to_numpy()"


def refuse_masked(x: Any, name: str) -> None:
    """Raise ValueError for an array with masked values, since tonari does not support masks.

    >>> import numpy as np
    >>> from tonari.inputs import refuse_masked
    >>> refuse_masked(np.ma.masked_array([1.0, 2.0], mask=[False, True]), "points")
    Traceback (most recent call last):
    ValueError: points: has masked values; fill them first, with .filled(...)
    """
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError(f"{name}: has masked values; fill them first, with .filled(...)")


def name_of_dtype(x: Any) -> str:
    """Return the name of the dtype of an array or tensor, as in NumPy; "bfloat16" for BFLOAT16.

    >>> import numpy as np
    >>> from tonari.inputs import name_of_dtype
    >>> name_of_dtype(np.zeros(3, np.float32))
    'float32'
    """
    return _plain_name(x.dtype)


@cached()
def _plain_name(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return NAME if name == _BFLOAT16 else name


def check_strided(tensor: Any, name: str) -> None:
    """Raise TypeError for a sparse or nested torch tensor."""
    if tensor.is_nested:
        raise TypeError(f"{name}: is a nested tensor; use x.to_padded_tensor(0.0) if its rows are of one length")
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{name}: sparse input is not supported; use .to_dense() if it fits in memory")


@cached()
def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return a readable name of a dtype, for messages."""
    if dtype == BFLOAT16:
        return NAME
    if dtype.name.startswith("void"):
        return "a record" if dtype.names else f"raw bytes ({dtype})"
    return {"O": "object (mixed or unequal rows)", "U": "text", "S": "bytes"}.get(dtype.kind, dtype.name)


def rank_fix(shape: tuple[int, ...]) -> str:
    """Suggest how to reshape an array of this shape to a matrix; "" if it is a matrix or a scalar."""
    if len(shape) == 1:
        return "; use .reshape(1, -1) for one row, .reshape(-1, 1) for one column"
    if len(shape) > 2:
        return f"; use .reshape({shape[0]}, -1) to make each item one row"
    return ""
