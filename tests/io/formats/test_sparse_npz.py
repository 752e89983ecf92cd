"""Files of scipy.sparse.save_npz."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tonari import io  # noqa: E402
from tonari.io import FileFormatError  # noqa: E402
from tonari.io.formats.sparse_npz import is_sparse, read  # noqa: E402

MATRIX = sparse.random(40, 30, density=0.2, format="csr", dtype=np.float32, random_state=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    sparse.save_npz(tmp_path / "m.npz", MATRIX)
    return tmp_path / "m.npz"


def test_a_matrix_is_read_and_described(path: Path) -> None:
    assert is_sparse(path)
    assert np.array_equal(read(path, 100).toarray(), MATRIX.toarray())
    about = io.describe(path)
    assert (about.format, about.rows, about.columns, about.dtype) == ("sparse npz", 40, 30, "float32")
    assert about.extra == {"format": "csr", "stored values": str(MATRIX.nnz)}


def test_other_archives_are_no_sparse_matrix(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", data=np.eye(3), indices=np.eye(3))
    (tmp_path / "b.npz").write_bytes(b"PK no archive")
    assert not any(is_sparse(tmp_path / name) for name in ("a.npz", "b.npz", "missing.npz"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_no_sparse_matrix(tmp_path: Path) -> None:
    """Opening it would wait for a writer."""
    os.mkfifo(tmp_path / "pipe.npz")
    assert not is_sparse(tmp_path / "pipe.npz")


def test_a_damaged_archive_is_named(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"PK\x01\x02")] + b"damaged" + whole[-22:])
    with pytest.raises(FileFormatError, match=str(path)):
        is_sparse(path)


def test_what_is_no_whole_matrix_of_rows_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"is a sparse matrix; load it with scipy\.sparse\.load_npz"):
        io.read(path)
    sparse.save_npz(path, sparse.csr_array(np.ones((3000, 3000))))
    with pytest.raises(FileFormatError, match="at most 2 times the file are read"):
        read(path, 2)
    sparse.save_npz(path, MATRIX.tocsc())
    with pytest.raises(ValueError, match=r"format csc, expected compressed rows; save matrix\.tocsr\(\)"):
        read(path, 100)
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes([whole[60] ^ 255]) + whole[61:])
    with pytest.raises((FileFormatError, ValueError)):
        read(path, 100)
