"""Files that lie, and calls that cannot be: every message names the path, what was found and what was expected."""

from __future__ import annotations

import builtins
import errno
import importlib
import io
import os
import pickle
import re
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tonari
from tonari.core.neighbors import Neighbors
from tonari.io import (
    SUFFIXES,
    FileFormatError,
    bin,
    describe,
    read,
    read_ground_truth,
    vecs,
    write,
    write_ground_truth,
)

FLAT = [*vecs.DTYPES, *bin.DTYPES, ".npy"]


def make(tmp_path: Path, suffix: str, shape: tuple[int, int] = (6, 5)) -> Path:
    path = tmp_path / f"points{suffix}"
    write(path, np.ones(shape, SUFFIXES[suffix].dtype or np.float32))
    return path


def refusal(path: Path, call: Any = read, **options: Any) -> str:
    """The message of the ValueError that both reading and describing raise."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        call(path, **options)
    return str(caught.value)


def counts(message: str) -> tuple[int, list[int]]:
    """(bytes found, bytes expected) as the message says them."""
    found = re.search(r"found (\d+) bytes, expected ((?:at least )?(\d+)(?: or (\d+))?) bytes?", message)
    assert found, message
    return int(found[1]), [int(number) for number in found.groups()[2:] if number]


def damage(path: Path, call: Any = read, **options: Any) -> FileFormatError:
    """The documented exception, with path, bytes found and bytes expected."""
    with pytest.raises(FileFormatError, match=re.escape(str(path))) as caught:
        call(path, **options)
    error = caught.value
    assert error.path == path
    assert isinstance(error.found, int)
    assert f"found {error.found} bytes" in str(error)
    assert f"expected {error.expected}" in str(error)
    return error


@pytest.mark.parametrize("call", [read, describe])
@pytest.mark.parametrize("change", [-1, 1, 4], ids=["one byte short", "one byte more", "four bytes more"])
@pytest.mark.parametrize("suffix", FLAT)
def test_size_belies_header(tmp_path: Path, suffix: str, change: int, call: Any) -> None:
    path = make(tmp_path, suffix)
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + b"\0" * change)
    found, expected = counts(refusal(path, call))
    assert found == len(content) + change
    assert len(content) in expected


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"empty{suffix}"
    path.touch()
    for call in (read, describe):
        assert counts(refusal(path, call)) == (0, [1])


@pytest.mark.parametrize("suffix", [*vecs.DTYPES, *bin.DTYPES])
def test_file_shorter_than_its_header(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"short{suffix}"
    path.write_bytes(b"\1\0\0")
    assert counts(refusal(path)) == (3, [4 if suffix in vecs.DTYPES else 8])


@pytest.mark.parametrize("columns", [0, -1])
@pytest.mark.parametrize("suffix", vecs.DTYPES)
def test_vecs_without_columns(tmp_path: Path, suffix: str, columns: int) -> None:
    path = tmp_path / f"zero{suffix}"
    path.write_bytes(struct.pack("<3i", columns, columns, columns))
    message = refusal(path)
    assert counts(message) == (12, [4 + SUFFIXES[suffix].dtype.itemsize])
    assert f"row 0 says {columns} columns" in message


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("suffix", bin.DTYPES)
def test_bin_without_rows_or_columns(tmp_path: Path, suffix: str, rows: int, columns: int) -> None:
    path = tmp_path / f"zero{suffix}"
    path.write_bytes(struct.pack("<2I", rows, columns))
    message = refusal(path)
    assert counts(message) == (8, [8 + SUFFIXES[suffix].dtype.itemsize])
    assert f"{rows} rows and {columns} columns" in message


@pytest.mark.parametrize("row", [1, 6, 12])
@pytest.mark.parametrize("suffix", vecs.DTYPES)
def test_vecs_row_of_another_width(tmp_path: Path, suffix: str, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vecs, "CHECKED_ROWS", 4)  # so that rows 6 and 12 are in later parts of the comparison
    path = make(tmp_path, suffix, (13, 5))
    itemsize = SUFFIXES[suffix].dtype.itemsize
    stride = 4 + 5 * itemsize
    content = bytearray(path.read_bytes())
    content[row * stride : row * stride + 4] = struct.pack("<i", 7)
    path.write_bytes(content)
    for call in (read, describe):
        message = refusal(path, call)
        assert f"row {row}, at byte {row * stride} of {13 * stride}, says 7 columns" in message
        assert f"found a row of {4 + 7 * itemsize} bytes, expected {stride} bytes" in message


def test_vecs_of_another_type_is_told(tmp_path: Path) -> None:
    path = make(tmp_path, ".fvecs")
    path = path.rename(path.with_suffix(".bvecs"))
    assert "Check that the values are uint8 (the suffix decides)" in refusal(path)


def test_vecs_truncated_in_its_only_row(tmp_path: Path) -> None:
    path = make(tmp_path, ".fvecs", (1, 5))
    path.write_bytes(path.read_bytes()[:10])
    assert counts(refusal(path)) == (10, [24])


def test_bin_with_truncated_wide_header_file(tmp_path: Path) -> None:
    path = tmp_path / "wide.fbin"
    path.write_bytes(struct.pack("<2Q", 3, 2) + bytes(20))
    message = refusal(path)
    assert counts(message) == (36, [40])
    assert "16-byte header: 3 rows, 2 columns" in message


def test_npy_with_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "none.npy"
    np.save(path, np.zeros((0, 4), np.float32))
    assert "shape (0, 4), which is 0 bytes of values, expected at least 4 bytes" in refusal(path)


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
        b"\x93NUMPY\x01\x00\x76\x00{'descr'",  # shorter than the 0x76 bytes it says
        b"\x93NUMPY\x01\x00\x04\x00((((",
        b"\x93NUMPY\x01\x00\x0a\x00'''abcdefg",  # an unfinished text
        b"\x93NUMPY\x01\x00\x0a\x00{1:2, []:3",  # neither Python nor a dictionary
        b"\x93NUMPY\x01\x00\x0a\x00a\n   b\n  c ",  # indented as no Python is
        b"\x93NUMPY\x01\x00\x08\x00{[]: 3} ",  # Python, but a list is no key
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


def test_npz_keys(tmp_path: Path) -> None:
    path = tmp_path / "two.npz"
    np.savez(path, base=np.ones((2, 2)), queries=np.ones((1, 2)))
    for call in (read, describe):
        assert "found 2 arrays, expected one. Choose with key=: base, queries" in refusal(path, call)
        assert "no array 'bass'. Choose with key=: base, queries" in refusal(path, call, key="bass")
    np.savez(path)
    assert "found 0 arrays" in refusal(path)


@pytest.mark.parametrize("keep", [10, -1, 200])
def test_npz_truncated(tmp_path: Path, keep: int) -> None:
    path = make(tmp_path, ".npz")
    path.write_bytes(path.read_bytes()[:keep])
    size = path.stat().st_size
    assert f"found {size} bytes, expected a whole zip archive with its 22-byte end record" in refusal(path)


def test_npz_with_a_flipped_bit(tmp_path: Path) -> None:
    path = make(tmp_path, ".npz", (100, 100))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "Bad CRC-32" in refusal(path)


def test_npz_with_damaged_compression(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("base.npy", bytes(1000))
    content = bytearray(path.read_bytes())
    content[30 + len("base.npy")] = 0b111  # the first block says type 3, which does not exist
    path.write_bytes(content)
    message = refusal(path)
    assert f"found {len(content)} bytes, expected a whole zip archive" in message
    assert "invalid block type" in message


def test_npz_member_that_ends_after_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("base.npy", buffer.getvalue().replace(b"(3, 2), }   ", b"(3000, 2), }"))
        member = archive.infolist()[0]
        member.file_size = member.compress_size = 128 + 3000 * 2 * 8
    assert f"found {path.stat().st_size} bytes, expected a whole zip archive" in refusal(path)


def test_npz_member_that_lies(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.ones((3, 2)))
    path = tmp_path / "lie.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("base.npy", buffer.getvalue()[:-5])
    message = refusal(path)
    assert counts(message) == (128 + 48 - 5, [128 + 48])
    assert "array 'base'" in message


def test_hdf5_truncated(tmp_path: Path) -> None:
    path = make(tmp_path, ".hdf5", (100, 50))
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-7])
    message = refusal(path)
    assert f"found {size - 7} bytes, expected a whole HDF5 file" in message
    assert f"stored_eof = {size}" in message


def test_hdf5_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "fake.h5"
    path.write_bytes(b"hello")
    assert "found 5 bytes, expected a whole HDF5 file" in refusal(path)


def test_hdf5_damaged_values(tmp_path: Path) -> None:
    path = tmp_path / "sums.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train", data=np.arange(4000.0).reshape(100, 40), chunks=(100, 40), fletcher32=True)
        middle = file["train"].id.get_chunk_info(0).byte_offset + 999
    content = bytearray(path.read_bytes())
    content[middle] ^= 255
    path.write_bytes(content)
    assert f"found {len(content)} bytes, expected a whole HDF5 file" in refusal(path)


def test_hdf5_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["test"] = np.ones((2, 2))
        file.create_group("group")
        file["null"] = h5py.Empty("f4")
    for call in (read, describe):
        assert "no dataset 'train'. Choose with key=: null, test" in refusal(path, call)
        assert "no dataset 'group'. Choose with key=: null, test" in refusal(path, call, key="group")
        assert "has shape ()" in refusal(path, call, key="null")


def test_hdf5_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path, ".hdf5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'tonari[hdf5]'")):
        read(path)
    with pytest.raises(ImportError, match=re.escape("pip install 'tonari[hdf5]'")):
        write(tmp_path / "new.h5", np.ones((2, 2)))
    assert not (tmp_path / "new.h5").exists()


def test_io_is_imported_without_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        assert not name.startswith("h5py")
        return true_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr(tonari.io, "hdf5", tonari.io.hdf5)  # to have the same one again afterwards
    monkeypatch.delitem(sys.modules, "tonari.io.hdf5")
    assert importlib.import_module("tonari.io.hdf5").DEFAULT_KEY == "train"


@pytest.mark.parametrize(("name", "nearest"), [("a.fvec", ".fvecs"), ("a.fbinn", ".fbin"), ("a.hdf", ".hdf5")])
def test_unknown_suffix(tmp_path: Path, name: str, nearest: str) -> None:
    path = tmp_path / name
    for call in (read, describe, lambda path: write(path, np.ones((1, 1)))):
        message = refusal(path, call)
        assert f"unknown suffix '{Path(name).suffix}'; the nearest is '{nearest}'" in message
        assert all(suffix in message for suffix in SUFFIXES)


def test_no_suffix(tmp_path: Path) -> None:
    assert "no suffix, which would name the format" in refusal(tmp_path / "points")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_absent_file_and_directory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"absent{suffix}"
    for call in (read, describe):
        with pytest.raises(FileNotFoundError, match=re.escape(f"{path}: no such file")):
            call(path)
    path.mkdir()
    for call in (read, describe, lambda path: write(path, np.ones((1, 1), SUFFIXES[suffix].dtype))):
        with pytest.raises(IsADirectoryError, match=re.escape(str(path))):
            call(path)


def test_writing_into_an_absent_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create it first"):
        write(tmp_path / "none" / "a.npy", np.ones((1, 1)))


@pytest.mark.parametrize("suffix", FLAT)
def test_key_where_there_are_no_keys(tmp_path: Path, suffix: str) -> None:
    path = make(tmp_path, suffix)
    assert "holds one array" in refusal(path, key="train")
    assert "holds one array" in refusal(path, describe, key="train")


@pytest.mark.parametrize("suffix", [*vecs.DTYPES, *bin.DTYPES])
def test_wrong_dtype_for_the_suffix(tmp_path: Path, suffix: str) -> None:
    path, dtype = tmp_path / f"a{suffix}", SUFFIXES[suffix].dtype
    message = refusal(path, lambda path: write(path, np.ones((2, 2), np.float64)))
    assert f"found float64 (8 bytes a value), expected {dtype} ({dtype.itemsize} bytes a value)" in message
    assert f".astype('{dtype}')" in message
    assert message.endswith("one of these suffixes: .npy .npz .hdf5 .h5")
    assert not path.exists()


def test_wrong_dtype_names_the_suffixes_that_fit(tmp_path: Path) -> None:
    message = refusal(tmp_path / "a.fbin", lambda path: write(path, np.ones((2, 2), np.uint8)))
    assert message.endswith("one of these suffixes: .bvecs .u8bin .npy .npz .hdf5 .h5")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_arrays_that_cannot_be_written(tmp_path: Path, suffix: str) -> None:
    path, dtype = tmp_path / f"a{suffix}", SUFFIXES[suffix].dtype
    for shape, said in [((3,), "has shape (3,)"), ((0, 3), "has shape (0, 3)"), ((3, 0), "has shape (3, 0)")]:
        assert said in refusal(path, lambda path, shape=shape: write(path, np.ones(shape, dtype)))
    assert "holds complex128" in refusal(path, lambda path: write(path, np.ones((2, 2), complex)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_masked_values_are_not_written(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"a{suffix}", np.ma.masked_array(np.ones((2, 2), SUFFIXES[suffix].dtype), [[0, 1], [0, 0]])
    assert "the array to write: has masked values; fill them first" in refusal(path, lambda path: write(path, array))
    assert list(tmp_path.iterdir()) == []
    write(path, np.ma.masked_array(array.data, False))  # no value is masked
    np.testing.assert_array_equal(read(path), array.data)


@pytest.mark.parametrize("masked", ["distances", "indices"])
def test_masked_neighbours_are_not_written(tmp_path: Path, masked: str) -> None:
    path, given = tmp_path / "t.ibin", Neighbors(np.ones((2, 2), np.float32), np.ones((2, 2), np.int32))
    given = given._replace(**{masked: np.ma.masked_array(getattr(given, masked), [[0, 1], [0, 0]])})
    assert f"{masked}: has masked values" in refusal(path, lambda path: write_ground_truth(path, given))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the one exception for what is in a file


def test_the_exception_says_what_is_there_and_what_should_be(tmp_path: Path) -> None:
    path = make(tmp_path, ".fbin")
    path.write_bytes(path.read_bytes()[:-5])
    error = damage(path)
    assert (error.found, error.expected) == (8 + 4 * 30 - 5, 8 + 4 * 30)
    again = pickle.loads(pickle.dumps(error))  # from a worker process
    assert (str(again), again.path, again.found, again.expected) == (str(error), path, error.found, error.expected)


def _npy(description: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(description) + 1) + description.encode() + b"\n"


def _shape(shape: str) -> bytes:
    return _npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (_shape(f"({'-' * 5000}1, 2)"), "a .npy header"),  # deeper than the parser goes
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


def _claims(path: Path, name: str, dtype: str, *others: tuple[str, Any]) -> None:
    """An archive of some hundred bytes whose one array claims 128 TiB, in its header and in the archive's."""
    head = _npy(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({1 << 44}, 2)}}")
    with zipfile.ZipFile(path, "w") as archive:
        for other, value in others:
            buffer = io.BytesIO()
            np.save(buffer, value)
            archive.writestr(f"{other}.npy", buffer.getvalue())
        archive.writestr(f"{name}.npy", head + bytes(8))
        archive.infolist()[-1].file_size = len(head) + (1 << 47)


def test_npz_that_claims_more_than_any_file(tmp_path: Path) -> None:
    path = tmp_path / "lie.npz"
    _claims(path, "arr_0", "<f4")
    error = damage(path)
    assert error.found == path.stat().st_size
    assert f"its values take {1 << 47} bytes in memory" in str(error)
    about = np.array('{"format": "tonari.KNNGraph", "version": 1}')
    _claims(path, "indices", "<i4", ("about", about))
    error = damage(path, tonari.KNNGraph.load)
    assert "lie.npz: not a whole KNNGraph file: array 'indices': found" in str(error)


def test_npz_of_an_unknown_compression_or_encrypted(tmp_path: Path) -> None:
    path = make(tmp_path, ".npz")
    whole = path.read_bytes()
    entry = whole.rfind(b"PK\x01\x02")
    for here, there, value, said in ((entry + 10, 8, 99, "not supported"), (entry + 8, 6, 1, "is encrypted")):
        content = bytearray(whole)
        for place in (here, there):
            struct.pack_into("<H", content, place, value)
        path.write_bytes(content)
        for call in (read, describe):
            assert said in str(damage(path, call))
    content = bytearray(whole)
    struct.pack_into("<I", content, entry + 42, 0xFFFFFFF0)  # the offset of the member
    path.write_bytes(content)
    damage(path)


def test_a_graph_whose_compression_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    tonari.knn_graph(np.eye(5, dtype=np.float32), 2).save(path)
    with np.load(path) as archive:
        np.savez_compressed(path, **archive)
    whole = path.read_bytes()
    for place in range(60, 300):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            tonari.KNNGraph.load(path)  # a byte that carries nothing
        except FileFormatError as error:
            assert str(error).startswith(f"{path}: not a whole KNNGraph file: ")  # noqa: PT017


@pytest.mark.parametrize(
    "about", ['"seed": "x"', '"method": [1]', '"include_self": 2', '"metric": {}', '"version": ' + "[" * 100_000]
)
def test_a_graph_that_says_strange_things_about_itself(tmp_path: Path, about: str) -> None:
    path = tmp_path / "g.npz"
    facts = '"format": "tonari.KNNGraph", "version": 1, "metric": "l1", "method": "x", "include_self": false, "seed": 1'
    text = np.array("{" + facts + ", " + about + ("" if about.endswith("[") else "}"))
    np.savez(path, about=text, indices=np.array([[1], [0]], np.int32), distances=np.ones((2, 1), np.float32))
    assert "not a whole KNNGraph file: found" in str(damage(path, tonari.KNNGraph.load))


def test_pairs_that_are_no_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, indices=np.ones((3, 2)), distances=np.ones((3, 2)))
    assert "48 bytes of float64 as neighbors" in str(damage_of_pair(path))
    np.savez(path, indices=np.ones((3, 2), np.int32), distances=np.ones((2, 2)))
    assert damage_of_pair(path).found == 32
    np.savez(path, indices=np.ones((3, 2), np.int32), distances=np.ones((3, 2)))
    assert read_ground_truth(path).indices.dtype == np.int32


def damage_of_pair(path: Path) -> FileFormatError:
    with pytest.raises(FileFormatError, match=re.escape(str(path))) as caught:
        read_ground_truth(path)
    return caught.value


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    for call in (read, describe, tonari.KNNGraph.load):
        assert "a pipe" in str(damage(path, call))


# ---------------------------------------------------------------- sizes in memory against the size of the file


def _expanding(path: Path) -> None:
    """A small file of 80,000,000 bytes of values."""
    if path.suffix == ".npz":
        np.savez_compressed(path, np.zeros((10_000, 1000)))
    else:
        with h5py.File(path, "w") as file:
            file.create_dataset("train", (10_000, 1000), "f8")  # nothing is written, all is 0


@pytest.mark.parametrize("suffix", [".npz", ".hdf5"])
def test_values_far_beyond_the_file_are_refused_unless_allowed(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a{suffix}"
    _expanding(path)
    size = path.stat().st_size
    error = damage(path)
    assert (error.found, error.expected) == (size, "at least 800000 bytes")
    most = -(-80_000_000 // size)
    assert "take 80000000 bytes in memory, and at most 100 times the file are read. " in str(error)
    assert f"max_expansion={most} " in str(error)
    damage(path, max_expansion=most - 1)
    assert read(path, max_expansion=most).nbytes == 80_000_000
    assert describe(path).rows == 10_000
    monkeypatch.setenv("TONARI_MAX_EXPANSION", "inf")
    assert read(path).nbytes == 80_000_000
    damage(path, max_expansion=100)


def test_small_values_are_read_however_small_their_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, np.zeros((8000, 1000), np.int8))
    assert path.stat().st_size < 80_000
    assert not read(path).any()


def test_a_chunk_counts_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train", (2, 2), "f4", chunks=(1 << 14, 1 << 14), maxshape=(None, None))
    assert f"its values take {1 << 30} bytes" in str(damage(path))


@pytest.mark.parametrize("given", [0, 0.5, -1, float("nan"), "many", True, [3]])
def test_limits_that_are_none(tmp_path: Path, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path, ".npz")
    said = "expected a number of at least 1"
    for call in (read, read_ground_truth, tonari.KNNGraph.load):
        with pytest.raises(ValueError, match=f"^max_expansion=.*{said}"):
            call(path, max_expansion=given)
    monkeypatch.setenv("TONARI_MAX_EXPANSION", str(given))
    if given is not True:
        with pytest.raises(ValueError, match=f"^TONARI_MAX_EXPANSION=.*{said}"):
            read(path)


# ---------------------------------------------------------------- HDF5 that refers to other files


def _refers(path: Path, other: Path) -> list[str]:
    """A file all of whose datasets but one are elsewhere; their names."""
    with h5py.File(path, "w") as file:
        file["own"] = np.ones((3, 2))
        file["relative"] = h5py.SoftLink("own")
        file["train"] = h5py.ExternalLink(other.name, "/secret")
        file["soft"] = h5py.SoftLink("/train")
        group = file.create_group("group")
        group["out"] = h5py.ExternalLink(other.name, "/")
        group["in"] = h5py.SoftLink("/own")
        file["through"] = h5py.SoftLink("/group/out/secret")
        file.create_dataset("stored", (4, 2), "f4", external=[(str(other), 0, 32)])
        layout = h5py.VirtualLayout((3, 2), "f8")
        layout[:] = h5py.VirtualSource(str(other), "secret", (3, 2))
        file.create_virtual_dataset("virtual", layout)
    return ["train", "soft", "group/out/secret", "through", "stored", "virtual"]


@pytest.mark.parametrize("there", [True, False])
def test_hdf5_never_hands_out_another_file(tmp_path: Path, there: bool) -> None:
    path, other = tmp_path / "a.hdf5", tmp_path / "other.hdf5"
    if there:
        with h5py.File(other, "w") as file:
            file["secret"] = np.ones((3, 2))
    for key in _refers(path, other):
        for call in (read, describe):
            assert "expected values that are all in this file" in str(damage(path, call, key=key)), key
    for key in ("own", "relative", "group/in"):
        assert read(path, key=key).shape == (3, 2)
    listed = describe(path, key="own").extra["keys"].split(", ")
    assert {"own", "relative"} <= set(listed)
    assert not {"train", "soft", "through"} & set(listed)  # they would have to be opened


@pytest.mark.parametrize("name", ["loop", "nowhere", "own/x", "group", "group/x", "/"])
def test_hdf5_names_that_lead_nowhere(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["own"] = np.ones((3, 2))
        file["loop"] = h5py.SoftLink("/loop")
        file["nowhere"] = h5py.SoftLink("/none/x")
        file.create_group("group")
    for call in (read, describe):
        assert f"there is no dataset {name!r}. Choose with key=: own" in refusal(path, call, key=name)


@pytest.mark.parametrize("saver", ["write", "graph", "index", "pairs", "search"])
def test_a_full_disk_is_named(saver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).standard_normal((500, 64)).astype(np.float32)
    index, graph = tonari.Index(points), tonari.knn_graph(points, 50)
    path = tmp_path / {"graph": "a.npz", "index": "a.index", "search": "a.ibin"}.get(saver, "a.npy")

    def full(descriptor: int, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    save = {
        "write": lambda: tonari.io.write(path, points),
        "graph": lambda: graph.save(path),
        "index": lambda: index.save(path),
        "pairs": lambda: tonari.pairs(points, 5.0, out=path),
        "search": lambda: tonari.search_to_file(points, index, 5, path),
    }[saver]
    with pytest.raises(OSError, match=re.escape(str(path))) as caught:
        save()
    assert caught.value.errno == errno.ENOSPC
    assert not path.exists()
