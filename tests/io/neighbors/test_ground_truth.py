"""Ground truth files (ids, then distances) are never read as plain matrices, nor plain matrices as ground truth."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from tonari.core.results.neighbors import Neighbors
from tonari.io import SUFFIXES, describe, read, read_ground_truth, write, write_ground_truth


def truth(rows: int = 4, k: int = 3, ids: type = np.int32) -> Neighbors:
    rng = np.random.default_rng([rows, k])
    distances = np.sort(rng.random((rows, k), dtype=np.float32), axis=1)
    return Neighbors(distances, rng.integers(0, 1000, (rows, k)).astype(ids))


def refusal(path: Path, call: object = read_ground_truth) -> str:
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        call(path)  # type: ignore[operator]
    return str(caught.value)


@pytest.mark.parametrize("name", ["truth.ibin", "truth.bin", "truth"])
@pytest.mark.parametrize(("rows", "k"), [(1, 1), (1, 7), (9, 1), (40, 10)])
def test_round_trip(tmp_path: Path, name: str, rows: int, k: int) -> None:
    path, given = tmp_path / name, truth(rows, k)
    write_ground_truth(path, given)
    got = read_ground_truth(str(path))
    np.testing.assert_array_equal(got.indices, given.indices, strict=True)
    np.testing.assert_array_equal(got.distances, given.distances, strict=True)
    assert isinstance(got.indices, np.memmap)
    assert isinstance(got.distances, np.memmap)
    assert not got.indices.flags.writeable
    expected = struct.pack("<2I", rows, k) + given.indices.tobytes() + given.distances.tobytes()
    assert path.read_bytes() == expected
    assert os.listdir(tmp_path) == [name]


def test_any_strides_and_read_only(tmp_path: Path) -> None:
    given = Neighbors(*(np.asfortranarray(part)[::-1, ::2] for part in truth(8, 6)))
    for part in given:
        part.flags.writeable = False
    write_ground_truth(tmp_path / "t.ibin", given)
    got = read_ground_truth(tmp_path / "t.ibin")
    np.testing.assert_array_equal(got.indices, given.indices)
    np.testing.assert_array_equal(got.distances, given.distances)


def test_float64_distances_are_rounded(tmp_path: Path) -> None:
    given = Neighbors(np.array([[0.1, np.inf]]), np.array([[4, -1]], np.int32))
    write_ground_truth(tmp_path / "t.ibin", given)
    got = read_ground_truth(tmp_path / "t.ibin")
    np.testing.assert_array_equal(got.distances, np.array([[0.1, np.inf]], np.float32), strict=True)
    np.testing.assert_array_equal(got.indices, given.indices, strict=True)


def test_ids_from_2_to_the_31_on(tmp_path: Path) -> None:
    ids = np.array([[2**31 - 1, 2**31, 2**32 - 2, -1]])
    write_ground_truth(tmp_path / "t.ibin", Neighbors(np.zeros((1, 4), np.float32), ids))
    np.testing.assert_array_equal(read_ground_truth(tmp_path / "t.ibin").indices, ids, strict=True)


@pytest.mark.parametrize("call", [read_ground_truth, describe])
@pytest.mark.parametrize("change", [-4, -1, 1])
def test_size_belies_header(tmp_path: Path, change: int, call: object) -> None:
    path = tmp_path / "t.ibin"
    write_ground_truth(path, truth())
    content = path.read_bytes()
    path.write_bytes(content[:change] if change < 0 else content + b"\0" * change)
    # read_ground_truth counts ids and distances; describe reads .ibin as the plain matrix that it is not
    expected = 8 + 4 * 3 * (8 if call is read_ground_truth else 4)
    assert f"found {len(content) + change} bytes, expected {expected} bytes" in refusal(path, call)


def test_short_empty_and_absent(tmp_path: Path) -> None:
    path = tmp_path / "t.ibin"
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        read_ground_truth(path)
    path.touch()
    assert "found 0 bytes, expected at least 1 byte" in refusal(path)
    path.write_bytes(b"\1\0\0\0")
    assert "found 4 bytes, expected at least 8 bytes" in refusal(path)
    path.write_bytes(struct.pack("<2I", 5, 0))
    assert "found 8 bytes, expected at least 16 bytes" in refusal(path)


def test_ground_truth_is_no_matrix(tmp_path: Path) -> None:
    path = tmp_path / "t.ibin"
    write_ground_truth(path, truth())
    message = refusal(path, read)
    assert "found 104 bytes, expected 56 bytes" in message
    assert "use tonari.io.read_ground_truth" in message
    info = describe(path)
    assert (info.format, info.rows, info.columns, info.dtype, info.bytes) == ("ground truth", 4, 3, "int32", 104)
    assert info.extra == {"distances": "float32"}


def test_a_matrix_is_no_ground_truth(tmp_path: Path) -> None:
    path = tmp_path / "ids.ibin"
    write(path, truth().indices)
    message = refusal(path)
    assert "found 56 bytes, expected 104 bytes" in message
    assert "use tonari.io.read." in message
    assert describe(path).format == "ibin"


def test_hdf5(tmp_path: Path) -> None:
    path, given = tmp_path / "a.hdf5", truth()
    with h5py.File(path, "w") as file:
        file["neighbors"], file["distances"] = given.indices, given.distances
    got = read_ground_truth(path)
    np.testing.assert_array_equal(got.indices, given.indices, strict=True)
    np.testing.assert_array_equal(got.distances, given.distances, strict=True)
    with h5py.File(path, "w") as file:
        file["neighbors"], file["distances"] = given.indices, given.distances[:2]
    assert "found 24 bytes of distances (2, 3), expected 48 bytes" in refusal(path)
    with h5py.File(path, "w") as file:
        file["train"] = given.distances
    assert "no dataset 'neighbors'" in refusal(path)


@pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix != ".ibin"])
def test_suffix_of_another_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    assert "is the suffix of another format" in refusal(path, lambda path: write_ground_truth(path, truth()))
    assert not path.exists()


@pytest.mark.parametrize(
    ("distances", "indices", "said"),
    [
        (np.zeros((2, 2)), np.zeros((2, 3), np.int32), "must have one shape"),
        (np.zeros((2, 0)), np.zeros((2, 0), np.int32), "0 bytes of values"),
        (np.zeros(3), np.zeros(3, np.int32), "has shape (3,)"),
        (np.zeros((1, 1)), np.zeros((1, 1)), "indices are float64"),
        (np.zeros((1, 2)), np.array([[0, -2]]), "from -2 to 0, expected integers from -1"),
        (np.zeros((1, 2)), np.array([[0, 2**32 - 1]]), "to 4294967295, expected integers"),
        (
            np.array([[1e300]]),
            np.zeros((1, 1), np.int32),
            "a distance of 8 bytes that is too large for float32, 4 bytes",
        ),
        (*[np.broadcast_to(np.int32(0), (2**32, 1))] * 2, "does not fit the 8-byte header"),
    ],
)
def test_neighbors_that_cannot_be_written(
    tmp_path: Path, distances: np.ndarray, indices: np.ndarray, said: str
) -> None:
    path = tmp_path / "t.ibin"
    write_ground_truth(path, truth())
    before = path.read_bytes()
    assert said in refusal(path, lambda path: write_ground_truth(path, Neighbors(distances, indices)))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.ibin"]
