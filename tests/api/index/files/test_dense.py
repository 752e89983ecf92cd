"""An Index loaded from a file gives the same answers, and damage of the file is detected."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari import io
from tonari.api.index.files import dense as index_file
from tonari.io import FileFormatError
from tonari.metrics.reference import brute

D = 3
POINTS = checks.gaussian(300, 4)
QUERIES = checks.gaussian(9, 4, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "saved.index"


@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
@pytest.mark.parametrize("metric", ["euclidean", "l1"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
def test_it_answers_as_before(method: str, metric: str, dtype: str, path: Path) -> None:
    points = (POINTS * 20 + 60).astype(dtype)
    index = tonari.Index(points, metric=metric, method=method, threads=1, memory="1GB")
    index.save(path)
    again = tonari.Index.load(path, threads=2)
    assert repr(again) == repr(index)
    assert (len(again), again.memory) == (300, 10**9)
    queries = (QUERIES * 20 + 60).astype(dtype)
    for k in (1, 70, 300):
        assert_same_neighbors(again.search(queries, k), brute(queries, points, k, metric), metric=metric)
    assert again.points.tobytes() == points.tobytes()


def test_an_index_of_a_file_can_be_saved(path: Path, tmp_path: Path) -> None:
    tonari.Index(POINTS, metric="cosine").save(path)
    whole = path.read_bytes()
    tonari.Index.load(path).save(tmp_path / "other.index")
    assert (tmp_path / "other.index").read_bytes() == whole


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "bfloat16"])
def test_a_saved_index_comes_back(dtype: str, tmp_path: Path) -> None:
    points = np.round(checks.gaussian(37, 5) ** 2 * 20)
    given: Any = points.astype(dtype) if dtype != "bfloat16" else torch_rows(points)
    index = tonari.Index(given, method="exact", metric="l1", threads=1, memory="64MB")
    path = tmp_path / "saved.index"
    for ids in ([], [36], [0, 5]):
        index.remove(ids)
        index.save(path)
        again = tonari.Index.load(path)
        assert repr(again) == repr(index)
        assert (again.ids.tolist(), again.memory, again._threads) == (index.ids.tolist(), 64_000_000, 1)
        assert_same_neighbors(again.search(points[:9], 4), index.search(points[:9], 4))
        assert again._state.next_id == 37
        assert not again.points.flags.owndata  # memory-mapped
        other = tonari.Index.load(path, device="cpu", threads=2, memory="32MB")
        assert (other.memory, other._threads) == (32_000_000, 2)
        again.save(path)  # written over the file that it maps
        assert_same_neighbors(again.search(points[:9], 4), index.search(points[:9], 4))


def torch_rows(points: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(points).to(torch.bfloat16)


@pytest.mark.parametrize("given", [{}, {"transform": [[1.0, 0.5], [2.0, -1.0], [0.0, 3.0]]}], ids=["plain", "matrix"])
def test_no_byte_of_a_saved_index_changes_unnoticed(given: dict[str, Any], tmp_path: Path) -> None:
    index = tonari.Index(checks.gaussian(12, D), **given)
    index.remove([3])
    path = tmp_path / "saved.index"
    index.save(path)
    whole = path.read_bytes()
    assert whole.startswith(index_file.MAGIC)
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(io.FileFormatError, match=r"found \d+ bytes, expected what tonari.Index.save writes"):
            tonari.Index.load(path)
    for size in [*range(1, 600, 37), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(io.FileFormatError, match=f"found {size} bytes"):
            tonari.Index.load(path)
    path.write_bytes(whole)
    assert repr(tonari.Index.load(path)) == repr(index)
    path.write_bytes(whole + b"\0")
    with pytest.raises(io.FileFormatError, match="has extra bytes"):
        tonari.Index.load(path)
    np.save(tmp_path / "points.npy", checks.gaussian(12, D))
    with pytest.raises(io.FileFormatError, match="it begins with"):
        tonari.Index.load(tmp_path / "points.npy")
    with pytest.raises(FileNotFoundError, match="no such file"):
        tonari.Index.load(tmp_path / "none")


def test_a_later_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "saved.index"
    monkeypatch.setattr(index_file, "VERSION", 2)
    tonari.Index(checks.gaussian(12, D)).save(path)
    monkeypatch.undo()
    with pytest.raises(io.FileFormatError, match="its format version is 2, this release reads 1"):
        tonari.Index.load(path)


def test_an_interrupted_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "saved.index"
    tonari.Index(checks.gaussian(12, D)).save(path)
    before, passes = path.read_bytes(), [0]
    whole = index_file.pieces

    def interrupted(array: Any) -> Any:
        passes[0] += 1
        for piece in whole(array):
            yield piece
            if passes[0] == 2:  # raised while the points are written
                raise KeyboardInterrupt

    monkeypatch.setattr(index_file, "pieces", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tonari.Index(checks.gaussian(13, D)).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "tonari.KNNGraph"}, "its format is 'tonari.KNNGraph'"),
        ({"version": 2}, "its format version is 2, this release reads 1"),
        ({"metric": 3}, "its metric is 3"),
        ({"k": "5"}, "its k is '5'"),
        ({"dtype": "float64"}, "its header says"),
        ({"n": 2}, "its header says"),
        ({"n": True}, "its n is True"),
        ({"n": 2.0}, r"its n is 2\.0"),
        ({"n": -1, "d": -1}, "its n is -1"),
        ({"d": 0}, "its d is 0"),
        ({"version": True}, "its format version is True"),
        ({"version": 1.0}, r"its format version is 1\.0"),
        ({"metric": "l7"}, "l7"),
        ({"method": "quantum"}, "quantum"),
        ({"threads": 0}, "its threads is 0"),
        ({"threads": "2"}, "its threads is '2'"),
        ({"memory": -1}, "its memory is -1"),
        ({"device": 3}, "its device is 3"),
        ({"on": 3}, "its on is 3"),
        ({"next_id": 2}, "its next_id is 2"),
        ({"points_crc": None}, "its points_crc is None"),
        ({"other": 1}, "unknown 'other'"),
    ],
    ids=str,
)
def test_something_else_is_refused(changes: dict[str, Any], message: str, path: Path) -> None:
    tonari.Index(POINTS).save(path)
    whole = path.read_bytes()
    (length,) = struct.unpack("<I", whole[8:12])
    about = json.loads(whole[32 : 32 + length]) | changes
    text = json.dumps(about).encode()
    text = text.ljust(length if len(text) <= length else length + 64)
    header = whole[:8] + struct.pack("<II", len(text), zlib.crc32(text)) + bytes(16)
    path.write_bytes(header + text + whole[32 + length :])
    with pytest.raises(FileFormatError, match=message):
        tonari.Index.load(path)


@pytest.mark.parametrize(
    ("ids", "message"),
    [([5, 2], "do not ascend"), ([2, 2], "do not ascend"), ([-1, 2], "do not"), ([2, 300], "do not")],
)
def test_ids_with_a_right_checksum_are_looked_at(ids: list[int], message: str, path: Path) -> None:
    index = tonari.Index(POINTS)
    index.remove(list(range(2, 300)))
    state = index.__getstate__()
    index_file.save(path, state | {"_ids": np.array(ids)})
    with pytest.raises(FileFormatError, match=rf"saved\.index: .*its ids {message}"):
        tonari.Index.load(path)


def test_points_with_a_right_checksum_are_looked_at(path: Path) -> None:
    points = POINTS.copy()
    points[7, 2] = np.nan
    index_file.save(path, tonari.Index(POINTS).__getstate__() | {"_points": points})
    with pytest.raises(FileFormatError, match=r"saved\.index: .*its points: row 7 has a value that is not finite"):
        tonari.Index.load(path)


def test_a_pipe_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(FileFormatError, match="this is a device, a pipe or a socket"):
        tonari.Index.load(path)


def test_files_that_are_not_there_or_hold_something_else(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tonari.Index.load(path)
    with pytest.raises(FileNotFoundError, match="does not exist, create it first"):
        tonari.Index(POINTS).save(tmp_path / "none" / "saved.index")
    with pytest.raises(TypeError, match="path: expected a path, got int"):
        tonari.Index(POINTS).save(3)  # type: ignore[arg-type]
    graph = tmp_path / "graph.npz"
    tonari.knn_graph(POINTS, 3).save(graph)
    with pytest.raises(FileFormatError, match=r"not a whole Index file.*KNNGraph\.load read"):
        tonari.Index.load(graph)
    path.write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"found 0 bytes.*the file is empty"):
        tonari.Index.load(path)
