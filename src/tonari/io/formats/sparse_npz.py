"""Sparse matrices as scipy.sparse.save_npz writes them: a zip file of the arrays of the matrix."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tonari.io._common import FileInfo, check_expansion, open_regular, parsing, size_of
from tonari.io.formats.npy import read_vector_header

if TYPE_CHECKING:
    import scipy.sparse

_ARRAYS = {"format.npy", "shape.npy", "data.npy"}  # members of the archive in every sparse format
_EXPECTED, _FIX = "what scipy.sparse.save_npz writes", "Save it again."


def are_sparse(names: list[str]) -> bool:
    """Return whether an archive with arrays of these names contains a sparse matrix.

    >>> are_sparse(["indices", "indptr", "format", "shape", "data"]), are_sparse(["indices", "distances"])
    (True, False)
    """
    return {f"{name}.npy" for name in names} >= _ARRAYS


def is_sparse(path: Path) -> bool:
    """Return whether a file is an .npz archive with a sparse matrix; pipes and devices are not read."""
    if path.suffix.lower() != ".npz" or not path.is_file():
        return False
    with open_regular(path) as file, parsing(path, size_of(path), "a zip file of arrays", _FIX):
        if not zipfile.is_zipfile(file):
            return False
        with zipfile.ZipFile(file) as archive:
            return set(archive.namelist()) >= _ARRAYS


def read(path: Path, most: float) -> scipy.sparse.csr_array:
    """Read a matrix in CSR format, saved by scipy.sparse.save_npz.

    Parameters
    ----------
    path : Path
    most : float
        Largest size of the matrix in memory, as a multiple of the size of the file.

    Raises
    ------
    FileFormatError
        The file is damaged, or its arrays are larger than `most` allows.
    ValueError
        The matrix has another sparse format.
    ImportError
        SciPy is not installed.
    """
    size = size_of(path)
    with parsing(path, size, _EXPECTED, _FIX), zipfile.ZipFile(path) as archive:
        needed = sum(member.file_size for member in archive.infolist())
    check_expansion(path, size, needed, most)
    try:
        from scipy.sparse import csr_array, load_npz
    except ImportError as error:
        raise ImportError(f"{path}: a sparse matrix needs SciPy: pip install 'tonari[sparse]'") from error
    with parsing(path, size, _EXPECTED, _FIX):
        matrix = load_npz(path)
    if matrix.format != "csr":
        raise ValueError(
            f"{path}: is a sparse matrix of the format {matrix.format}, expected compressed rows; save matrix.tocsr()"
        )
    return csr_array(matrix)


def describe(path: Path) -> FileInfo:
    """Describe a sparse matrix by its stored shape and the headers of its arrays."""
    size = size_of(path)
    with parsing(path, size, _EXPECTED, _FIX):
        with np.load(path, allow_pickle=False) as arrays:
            rows, columns = (int(number) for number in arrays["shape"])
            kind = arrays["format"].item()
        with zipfile.ZipFile(path) as archive, archive.open("data.npy") as data:
            head = read_vector_header(data, path, archive.getinfo("data.npy").file_size, f"{path}, array 'data'")
    extra = {"format": kind.decode() if isinstance(kind, bytes) else kind, "stored values": str(head.shape[0])}
    return FileInfo(path, "sparse npz", rows, columns, str(head.dtype), size, extra)
