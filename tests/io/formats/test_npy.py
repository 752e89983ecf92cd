"""Damaged and hostile .npy files."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.helpers.files import counts, damage, refusal
from tonari.io import (
    describe,
    read,
)


def test_npy_with_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "none.npy"
    np.save(path, np.zeros((4, 0), np.float32))
    assert "shape (4, 0), which is 0 bytes of values, expected at least 4 bytes" in refusal(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".hdf5"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)], ids=str)
def test_arrays_that_are_not_matrices(tmp_path: Path, suffix: str, shape: tuple[int, ...]) -> None:
    path, array = tmp_path / f"a{suffix}", np.zeros(shape)
    if suffix == ".hdf5":
        with h5py.File(path, "w") as file:
            file["train"] = array
    else:
        (np.save if suffix == ".npy" else np.savez)(path, array)
    for call in (read, describe):
        assert f"has shape {shape}, expected (rows, columns)" in refusal(path, call)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize(
    "array",
    [np.array([["a"]]), np.array([[1j]]), np.zeros((1, 1), [("x", "f4")]), np.array([[None]], object)],
    ids=["text", "complex", "fields", "objects"],
)
def test_arrays_that_are_not_numbers(tmp_path: Path, suffix: str, array: np.ndarray) -> None:
    path = tmp_path / f"a{suffix}"
    (np.save if suffix == ".npy" else np.savez)(path, array)
    assert f"holds {array.dtype}, expected integers or floats" in refusal(path)


def test_npy_of_version_3(tmp_path: Path) -> None:
    path = tmp_path / "v3.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, np.ones((2, 2)), version=(3, 0))
    assert "version (3, 0)" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        b"not an array at all",
        b"\x93NUMPY\x01\x00\x76\x00{'descr'",  # shorter than the 0x76 bytes that it declares
        b"\x93NUMPY\x01\x00\x04\x00((((",
        b"\x93NUMPY\x01\x00\x0a\x00'''abcdefg",  # an unterminated string
        b"\x93NUMPY\x01\x00\x0a\x00{1:2, []:3",  # neither Python nor a dictionary
        b"\x93NUMPY\x01\x00\x0a\x00a\n   b\n  c ",  # invalid indentation
        b"\x93NUMPY\x01\x00\x08\x00{[]: 3} ",  # valid Python, but a list cannot be a key
    ],
)
def test_npy_with_a_damaged_header(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.npy"
    path.write_bytes(content)
    message = refusal(path)
    assert f"found {len(content)} bytes, expected a .npy header" in message
    assert "numpy.save" in message


def test_two_arrays_in_one_npy(tmp_path: Path) -> None:
    path = tmp_path / "two.npy"
    with path.open("wb") as file:
        np.save(file, np.ones((3, 2)))
        np.save(file, np.ones((3, 2)))
    assert counts(refusal(path)) == (2 * (128 + 48), [128 + 48])


def _npy(description: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(description) + 1) + description.encode() + b"\n"


def _shape(shape: str) -> bytes:
    return _npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (_shape(f"({'-' * 5000}1, 2)"), "a .npy header"),  # nested deeper than the parser allows
        (_shape("(True, 2)"), "not of whole numbers"),
        (_shape("(-1, -8)"), "0 bytes of values"),
        (_shape(f"({1 << 70}, 2)"), f"expected {(1 << 73) + len(_shape(f'({1 << 70}, 2)'))} bytes"),
        (_npy("{" + " " * 20_000 + "}"), "20003 bytes long, at most 10000 are read"),
    ],
    ids=["nested", "bool", "negative", "huge", "long"],
)
def test_hostile_npy(tmp_path: Path, header: bytes, said: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(header + bytes(8))
    for call in (read, describe):
        error = damage(path, call)
        assert said in str(error)
        assert "pickle" not in str(error)
