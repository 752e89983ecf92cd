"""Round trips through every format, lazy reading, and descriptions."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from tonari.io import SUFFIXES, FileInfo, _common, describe, read, tuning, write
from tonari.io.formats import bin

MAPPED = [suffix for suffix, form in SUFFIXES.items() if not form.keyed]
SHAPES = [(1, 1), (1, 5), (7, 1), (33, 17)]


def points(suffix: str, shape: tuple[int, int] = (33, 17)) -> np.ndarray:
    """Make values that use the whole range of the suffix's dtype."""
    dtype = SUFFIXES[suffix].dtype or np.dtype(np.float64)
    rng = np.random.default_rng(shape)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(tmp_path: Path, suffix: str, shape: tuple[int, int], mmap: bool) -> None:
    path, array = tmp_path / f"points{suffix}", points(suffix, shape)
    write(path, array)
    assert_same(read(path, mmap=mmap), array)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_strides_and_byte_order_write_the_same_values(tmp_path: Path, suffix: str) -> None:
    array = points(suffix, (12, 10))
    readonly = array.copy()
    readonly.flags.writeable = False
    swapped = array.astype(array.dtype.newbyteorder(">"))
    for i, given in enumerate([np.asfortranarray(array), array[::-2, 1::3], array.T, readonly, swapped]):
        path = tmp_path / f"{i}{suffix}"
        write(path, given)
        assert_same(read(path), given.astype(array.dtype))


def test_bytes_on_disk_are_the_published_layouts(tmp_path: Path) -> None:
    array = np.array([[1, 2, 3], [4, 5, 6]])
    for name, dtype, header, prefix in [
        ("a.fvecs", "<f4", b"", struct.pack("<i", 3)),
        ("a.bvecs", "u1", b"", struct.pack("<i", 3)),
        ("a.ivecs", "<i4", b"", struct.pack("<i", 3)),
        ("a.fbin", "<f4", struct.pack("<II", 2, 3), b""),
        ("a.f16bin", "<f2", struct.pack("<II", 2, 3), b""),
        ("a.u8bin", "u1", struct.pack("<II", 2, 3), b""),
        ("a.i8bin", "i1", struct.pack("<II", 2, 3), b""),
        ("a.ibin", "<i4", struct.pack("<II", 2, 3), b""),
    ]:
        rows = array.astype(dtype)
        write(tmp_path / name, rows)
        expected = header + b"".join(prefix + row.tobytes() for row in rows)
        assert (tmp_path / name).read_bytes() == expected, name


def test_others_read_what_is_written(tmp_path: Path) -> None:
    array = points(".npy")
    for suffix in (".npy", ".npz", ".hdf5"):
        write(tmp_path / f"a{suffix}", array)
    assert_same(np.load(tmp_path / "a.npy"), array)
    with np.load(tmp_path / "a.npz") as archive:
        assert archive.files == ["arr_0"]
        assert_same(archive["arr_0"], array)
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert list(file) == ["train"]
        assert_same(file["train"][()], array)


@pytest.mark.parametrize(("rows", "columns", "size"), [(5, 2, 8), (2**32 - 1, 1, 8), (2**32, 1, 16), (1, 2**32, 16)])
def test_written_header_is_wide_only_when_it_must_be(rows: int, columns: int, size: int) -> None:
    header = bin.header(rows, columns)
    assert len(header) == size
    assert struct.unpack("<2I" if size == 8 else "<2Q", header) == (rows, columns)


@pytest.mark.parametrize("suffix", bin.DTYPES)
def test_wide_header_is_told_by_the_size(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"wide{suffix}", points(suffix, (3, 2))
    path.write_bytes(struct.pack("<2Q", 3, 2) + array.tobytes())
    assert_same(read(path), array)
    assert describe(path).extra == {"header": "16 bytes"}


@pytest.mark.parametrize("suffix", MAPPED)
def test_reading_maps_the_file(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"points{suffix}", points(suffix)
    write(path, array)
    view = read(path)
    assert isinstance(view, np.memmap)
    assert not view.flags.writeable
    # A byte that changes on disk is visible through the map, so no copy was made.
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    assert view[-1, -1] != array[-1, -1]
    np.testing.assert_array_equal(view[:-1], array[:-1])


@pytest.mark.parametrize("suffix", MAPPED)
def test_reading_without_map_owns_its_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"points{suffix}"
    write(path, points(suffix))
    copy = read(path, mmap=False)
    assert type(copy) is np.ndarray
    assert copy.base is None
    assert copy.flags.c_contiguous
    assert copy.flags.writeable


def test_vecs_view_skips_the_widths_by_stride(tmp_path: Path) -> None:
    write(tmp_path / "a.fvecs", points(".fvecs", (9, 6)))
    assert read(tmp_path / "a.fvecs").strides == (4 + 6 * 4, 4)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_large_map_is_written_in_pieces_and_read_lazily(tmp_path: Path, suffix: str) -> None:
    dtype = SUFFIXES[suffix].dtype or np.dtype(np.float32)
    columns = 512 // dtype.itemsize
    source = np.memmap(tmp_path / "source", dtype, mode="w+", shape=(1 << 17, columns))  # 64 MB without stored bytes
    source[-1] = 3
    path = tmp_path / f"big{suffix}"
    tracemalloc.start()
    try:
        write(path, source)
        assert tracemalloc.get_traced_memory()[1] < 3 * tuning.PIECE_BYTES
        if suffix in MAPPED:
            tracemalloc.reset_peak()
            view = read(path)
            assert view[-1, -1] == 3
            assert tracemalloc.get_traced_memory()[1] < tuning.PIECE_BYTES
    finally:
        tracemalloc.stop()
    assert describe(path).rows == 1 << 17


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pieces_join_without_a_seam(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PIECE_BYTES", 100)
    array = points(suffix, (50, 7))
    assert len(list(_common.pieces(array))) > 3
    write(tmp_path / f"a{suffix}", array)
    assert_same(read(tmp_path / f"a{suffix}"), array)


@pytest.mark.parametrize("suffix", MAPPED)
def test_a_map_can_be_written_over_its_own_file(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"points{suffix}", points(suffix)
    write(path, array)
    write(path, read(path)[::-1])
    assert_same(read(path), array[::-1])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_describe(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"points{suffix}", points(suffix, (6, 4))
    write(path, array)
    extra = describe(path).extra
    name = {".h5": "hdf5"}.get(suffix, suffix[1:])
    assert describe(str(path)) == FileInfo(path, name, 6, 4, str(array.dtype), path.stat().st_size, extra)
    assert extra


def test_npy_in_fortran_order_stays_mapped(tmp_path: Path) -> None:
    array = np.asfortranarray(points(".npy"))
    np.save(tmp_path / "f.npy", array)
    view = read(tmp_path / "f.npy")
    assert isinstance(view, np.memmap)
    assert view.flags.f_contiguous
    assert_same(view, array)
    assert describe(tmp_path / "f.npy").extra["order"] == "Fortran"


def test_npy_version_2_header(tmp_path: Path) -> None:
    array = points(".npy")
    with (tmp_path / "v2.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version=(2, 0))
    assert_same(read(tmp_path / "v2.npy"), array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_key(tmp_path: Path, save: object) -> None:
    path, a, b = tmp_path / "two.npz", points(".npy", (3, 2)), points(".ibin", (4, 5))
    save(path, base=a, queries=b)  # type: ignore[operator]
    assert_same(read(path, key="base"), a)
    assert_same(read(path, key="queries"), b)
    info = describe(path, key="queries")
    assert (info.rows, info.columns, info.dtype) == (4, 5, "int32")
    assert info.extra == {"key": "queries", "keys": "base, queries"}


def test_npz_above_the_limit_of_plain_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)  # 2 GB otherwise
    array = points(".npy")
    write(tmp_path / "a.npz", array)
    assert (tmp_path / "a.npz").stat().st_size > 1000
    assert_same(read(tmp_path / "a.npz"), array)


def test_npz_ignores_members_that_are_not_arrays(tmp_path: Path) -> None:
    path, array = tmp_path / "a.npz", points(".npy")
    write(path, array)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "hello")
    assert_same(read(path), array)


@pytest.mark.parametrize("distance", ["angular", np.bytes_(b"angular")], ids=["variable", "fixed"])
def test_hdf5_as_ann_benchmarks_writes_it(tmp_path: Path, distance: str | bytes) -> None:
    path, train, test = tmp_path / "glove.hdf5", points(".fbin", (20, 4)), points(".fbin", (3, 4))
    with h5py.File(path, "w") as file:
        file.attrs["distance"] = distance
        file.create_dataset("train", data=train, chunks=(5, 4), compression="gzip")
        file["test"] = test
        file.create_group("more")
    assert_same(read(path), train)
    assert_same(read(path, key="test"), test)
    info = describe(path, key="test")
    assert (info.rows, info.columns, info.dtype, info.bytes) == (3, 4, "float32", path.stat().st_size)
    told = {} if isinstance(distance, str) else {"distance": "angular"}  # of variable length: not read, see describe
    assert info.extra == {"key": "test", "keys": "test, train"} | told


def test_suffix_case_does_not_matter(tmp_path: Path) -> None:
    array = points(".fvecs")
    write(tmp_path / "A.FVECS", array)
    assert_same(read(tmp_path / "A.FVECS"), array)
