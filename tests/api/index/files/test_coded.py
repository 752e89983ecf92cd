"""Codes in a file are loaded without reading the rows, and changed rows and damaged files are detected."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.api.index.test_coded import WITH_INT8, written
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tonari.api.index.files.dense import describe
from tonari.api.index.files.header import header_of, read_header
from tonari.cli._points import Inputs
from tonari.cli.commands.info import _facts
from tonari.core.process.isa import chosen_isa
from tonari.io import FileFormatError
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]


def saved(tmp_path: Path) -> tuple[Path, Array]:
    points = checks.gaussian(3000, 16, 4)
    index = tonari.Index(written(tmp_path / "points.npy", points), codes="int8", form_dim=9, metric="cosine", threads=2)
    index.save(tmp_path / "codes.index")
    code = 64 if chosen_isa() == "amx" else 32  # most bytes per point: AMX reads 64 columns
    assert (tmp_path / "codes.index").stat().st_size < 3000 * (code + 28)
    return tmp_path / "codes.index", points


def test_a_saved_index_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, points = saved(tmp_path)
    expected = brute(points[:9], points, 7, "cosine")
    packed: list[Any] = []
    monkeypatch.setattr("tonari.exact.cpu.rows.codes.PackedPoints", lambda *given: packed.append(given))
    again = tonari.Index.load(path)
    monkeypatch.undo()
    assert not packed  # codes are loaded from the file
    assert repr(again) == "Index(n=3000, d=16, metric='cosine', dtype=float32, method='exact', codes='int8')"
    assert (again.memory, again._threads, again.ids_are_rows) == (None, 2, True)
    assert_same_neighbors(again.search(points[:9], 7), expected, metric="cosine")
    again.save(tmp_path / "other.index")
    assert (tmp_path / "other.index").read_bytes() == path.read_bytes()
    for made in (pickle.loads(pickle.dumps(again)), copy.deepcopy(again), copy.copy(again)):
        assert_same_neighbors(made.search(points[:9], 7), expected, metric="cosine")
    isa = WITH_INT8[0]
    monkeypatch.setenv("TONARI_ISA", isa)  # that kernel uses another layout
    assert_same_neighbors(tonari.Index.load(path).search(points[:9], 7), expected, metric="cosine")
    assert tonari.Index.load(path, memory="1GB", threads=1).memory == 10**9


def test_codes_of_any_length_come_back(tmp_path: Path) -> None:
    points = checks.gaussian(100, 127, 4)  # codes of all columns; their length is not a multiple of 8 bytes
    tonari.Index(written(tmp_path / "points.npy", points), codes="int8").save(tmp_path / "codes.index")
    again = tonari.Index.load(tmp_path / "codes.index")
    assert_same_neighbors(again.search(points[:9], 7), brute(points[:9], points, 7, "euclidean"), metric="euclidean")


def test_changed_rows_are_noticed(tmp_path: Path) -> None:
    path, points = saved(tmp_path)
    rows = tmp_path / "points.npy"
    index, about = tonari.Index.load(path), rows.stat()
    changed = np.load(rows, mmap_mode="r+")
    changed[1700] += 1
    changed.flush()
    with pytest.raises(RuntimeError, match=r"points\.npy was written to since its codes were made"):
        index.search(points[:2], 3)
    with pytest.raises(RuntimeError, match="holds other rows from"):
        tonari.Index.load(path)
    changed[1700] = points[1700]  # the same rows, with a later modification time
    changed.flush()
    assert_same_neighbors(tonari.Index.load(path).search(points[:2], 3), brute(points[:2], points, 3, "cosine"))
    changed[0] += 1
    changed.flush()
    os.utime(rows, ns=(about.st_atime_ns, about.st_mtime_ns))
    # found by the checksum: size and time are the same
    with pytest.raises(RuntimeError, match="holds other rows from 0"):
        tonari.Index.load(path)
    np.save(rows, points[:-1])
    with pytest.raises(RuntimeError, match=r"has \d+ bytes, it had"):
        tonari.Index.load(path)
    rows.unlink()
    with pytest.raises(RuntimeError, match="is gone since"):
        index.search(points[:2], 3)
    with pytest.raises(FileNotFoundError, match="has codes of its rows"):
        tonari.Index.load(path)


def test_no_byte_of_a_file_of_codes_changes_unnoticed(tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    whole = path.read_bytes()
    for at in [*range(0, 700, 9), *range(700, len(whole), 1999), len(whole) - 1]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileFormatError, match=r"found \d+ bytes, expected what tonari.Index.save writes"):
            tonari.Index.load(path)
    for size in (40, 600, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=f"found {size} bytes"):
            tonari.Index.load(path)


def test_the_command_line_describes_it(tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    facts = describe(path)
    assert {name: facts[name] for name in ("n", "d", "codes", "columns", "metric")} == {
        "n": 3000,
        "d": 16,
        "codes": "int8",
        "columns": 9,
        "metric": "cosine",
    }
    shown = _facts(path, None, Inputs(None, None))
    assert (shown["rows"], shown["columns"]) == (3000, 16)
    assert shown["extra"]["rows_in"] == str(tmp_path / "points.npy")


def test_a_header_that_contradicts_itself(tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    about, _, begin = read_header(path)
    blocks = path.read_bytes()[begin:]
    for change, words in (
        ({"version": 2}, "its format version is 2"),
        ({"metric": "l2"}, "its metric"),
        ({"columns": 17}, "its columns are 17"),
        ({"pitch": 60}, "its pitch is 60"),
        ({"n": 2999}, "its slices are not those of all points"),
        ({"slices": 3}, "its header says"),
        ({"kernel": 3}, "its kernel is 3"),
    ):
        path.write_bytes(header_of(about | change) + blocks)
        with pytest.raises(FileFormatError, match=words):
            tonari.Index.load(path)
