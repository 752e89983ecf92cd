"""Corrupt files and impossible calls: every message names the path, the found value and the expected one."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.files import counts, damage, points_file, refusal
from tonari.core.results.neighbors import Neighbors
from tonari.io import (
    SUFFIXES,
    FileFormatError,
    describe,
    read,
    read_ground_truth,
    write,
    write_ground_truth,
)
from tonari.io.formats import bin, vecs

FLAT = [*vecs.DTYPES, *bin.DTYPES, ".npy"]


@pytest.mark.parametrize("call", [read, describe])
@pytest.mark.parametrize("change", [-1, 1, 4], ids=["one byte short", "one byte more", "four bytes more"])
@pytest.mark.parametrize("suffix", FLAT)
def test_size_belies_header(tmp_path: Path, suffix: str, change: int, call: Any) -> None:
    path = points_file(tmp_path, suffix)
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
    path = points_file(tmp_path, suffix)
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


def test_a_graph_whose_compression_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    tonari.knn_graph(np.eye(5, dtype=np.float32), 2).save(path)
    with np.load(path) as archive:
        np.savez_compressed(path, **archive)
    whole = path.read_bytes()
    for place in range(60, 300):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            tonari.KNNGraph.load(path)  # a byte without meaning
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
