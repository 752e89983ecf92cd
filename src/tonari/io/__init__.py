"""Files of points and of neighbours, whose format the suffix names; the last column says how points are read.

    .fvecs .bvecs .ivecs                 TEXMEX: a width before each row          formats/vecs.py    mapped
    .fbin .f16bin .u8bin .i8bin .ibin    Big-ANN: one header, then the values     formats/bin.py     mapped
    .npy                                 NumPy: one array                         formats/npy.py     mapped
    .npz                                 NumPy: named arrays in a zip file        formats/npz.py     loaded
    .hdf5 .h5                            ann-benchmarks (tonari[hdf5])            formats/hdf5.py    loaded
    .csv .tsv                            numbers as text, read only, float64      tables/text.py     loaded
    .parquet .arrow                      columns of numbers (tonari[arrow])       tables/arrow.py    loaded
    .csv .tsv .parquet .arrow            the choice of the coordinate columns     tables/columns.py
    any of these                         functions that open and describe points  points.py
    ids and distances of neighbours      Big-ANN ground truth                     neighbors/         mapped

A mapped file is opened as a memory map: rows are read from disk when they are used. If the contents of a file
contradict its header, :class:`FileFormatError` is raised, which has the bytes found and expected. Files are written
atomically.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tonari.core.hints import missing_from
from tonari.inputs import name_of_dtype
from tonari.inputs.arrays.kinds import from_host
from tonari.io import points
from tonari.io._common import Array, FileFormatError, FileInfo, StrPath, check_matrix, expansion
from tonari.io._formats import SUFFIXES, Format, format_of
from tonari.io.formats.bin import counts, holds_ground_truth
from tonari.io.neighbors import ground_truth
from tonari.io.neighbors.ground_truth import read_ground_truth, write_ground_truth
from tonari.io.tables.columns import choice

__all__ = [
    "SUFFIXES",
    "FileFormatError",
    "FileInfo",
    "Format",
    "describe",
    "read",
    "read_ground_truth",
    "write",
    "write_ground_truth",
]

__getattr__ = missing_from(__name__)


def read(
    path: StrPath,
    *,
    mmap: bool = True,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    max_expansion: float | None = None,
) -> Array:
    """Open the points in a file as an array, memory-mapped if its format allows it.

    Parameters
    ----------
    path : str or path; the suffix names the format, see `SUFFIXES`
    mmap : True maps the file read-only where its layout allows (all but .npz, HDF5 and tables); False copies it to
        memory
    key : name of the array in an .npz file (needed if it holds several) or HDF5 file ("train" by default), or of the
        column of lists in a Parquet or Arrow file (needed if it has several)
    columns : names of the columns of a table (.csv, .tsv, .parquet, .arrow) that are coordinates, in their order;
        columns that look like row numbers are then accepted
    drop : names of columns of a table to leave out; not together with `columns`
    max_expansion : largest size in memory of an array in an .npz or HDF5 file, which may be compressed, as a multiple
        of the size of the file; arrays of up to 64 MiB are always accepted. Default: TONARI_MAX_EXPANSION, or 100.

    Returns
    -------
    array of shape (n, d), d at least 1, in the dtype of the file; n is 0 if the file has columns but no rows.
    C-contiguous, except for a mapped .fvecs, .bvecs or .ivecs file, whose rows have a gap of 4 bytes, and for arrays
    that were saved in Fortran order.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        no such file
    FileFormatError
        the contents contradict the suffix or the header: the file is truncated, damaged or empty, or has another size
        than its header implies; rows differ in width; there are no columns or no numbers; values of an HDF5 file are in
        other files; a cell of a table is not a finite number; a column of a table with names is not in `columns` and
        looks like row numbers (no name, "Unnamed: 0", "__index_level_0__", or the values 0 to n - 1); or an array is
        larger than `max_expansion` allows. It is a ValueError with path, bytes found and bytes expected.
    ValueError
        the suffix is unknown; `key` is unknown or missing (the message lists the known ones); or `columns` or `drop` is
        given for a file that is not a table, names a missing column, or both are given
    TypeError
        `columns` or `drop` is not a list of names
    MemoryError
        the file is valid, but does not fit into memory
    ImportError
        HDF5 without h5py, Parquet or Arrow without pyarrow

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "points.u8bin")
    ...     write(path, np.arange(6, dtype=np.uint8).reshape(3, 2))  # 8 bytes of header, 3 * 2 values
    ...     print(path.stat().st_size, read(path, mmap=False).tolist())
    14 [[0, 1], [2, 3], [4, 5]]
    """
    most, chosen = expansion(max_expansion), choice(columns, drop)
    return points.read_points(Path(path), mmap=mmap, key=key, most=most, choice=chosen)[0]


def write(path: StrPath, array: Array) -> None:
    """Write points to a file, atomically.

    An existing file is replaced with all its arrays: .npz and HDF5 files then contain a single array ("arr_0",
    "train"). A memory map larger than memory is written in pieces of about 8 MB; it may map `path` itself.

    Parameters
    ----------
    path : str or path; the suffix names the format, see `SUFFIXES`
    array : shape (n, d), n and d at least 1, any strides; its dtype must be that of the suffix, since values are never
        converted (.npy, .npz and HDF5 support all integers and floating-point numbers)

    Raises
    ------
    ValueError
        the suffix is unknown, or the array has another dtype than the suffix, is not two-dimensional, has no rows or
        columns, or has masked values
    FileNotFoundError, IsADirectoryError
        the directory does not exist, or `path` is one
    ImportError
        HDF5 without h5py

    Examples
    --------
    >>> import numpy as np
    >>> write("points.fbin", np.zeros((3, 2)))
    Traceback (most recent call last):
    ...
    ValueError: points.fbin: found float64 (8 bytes a value), expected float32 (4 bytes a value), as the suffix says. \
Use .astype('float32'), or one of these suffixes: .npy .npz .hdf5 .h5
    """
    path = Path(path)
    form = format_of(path)
    if hasattr(array, "dtype") and name_of_dtype(array) == "bfloat16":
        raise ValueError(
            f"{path}: found bfloat16, which no format here supports, expected float32, which has all its values. "
            "Use .astype('float32'), or .float().numpy() for a tensor"
        )
    array = from_host(array, f"{path}, the array to write", "(rows, columns)")
    check_matrix(f"{path}, the array to write", array.shape, array.dtype)
    if form.dtype is not None and form.dtype != array.dtype.newbyteorder("<"):
        fitting = [suffix for suffix, other in SUFFIXES.items() if other.dtype in (None, array.dtype)]
        raise ValueError(
            f"{path}: found {array.dtype} ({array.itemsize} bytes a value), expected {form.dtype} "
            f"({form.dtype.itemsize} bytes a value), as the suffix says. "
            f"Use .astype('{form.dtype}'), or one of these suffixes: {' '.join(fitting)}"
        )
    form.family.write(path, array)


def describe(
    path: StrPath, *, key: str | None = None, columns: Sequence[str] | None = None, drop: Sequence[str] | None = None
) -> FileInfo:
    """Describe the shape, dtype and size of a file of points without reading its values.

    Only the header is read or, in .*vecs files, which have no header, the width of every row. Arguments and exceptions
    are those of `read`, except that an .ibin file of ground truth is described as such, arrays may have any size, and
    values are not checked.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(pathlib.Path(folder, "points.fvecs"), np.ones((5, 3), dtype=np.float32))
    ...     info = describe(pathlib.Path(folder, "points.fvecs"))
    >>> info.format, info.rows, info.columns, info.dtype, info.bytes  # 5 * (4 + 3 * 4) bytes
    ('fvecs', 5, 3, 'float32', 80)
    """
    path = Path(path)
    chosen = choice(columns, drop)
    format_of(path, key)
    if path.suffix.lower() == ".ibin" and holds_ground_truth(*counts(path)):
        return ground_truth.describe(path)
    return points.describe(path, key=key, choice=chosen)
