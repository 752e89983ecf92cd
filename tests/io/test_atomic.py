"""Files appear completely or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tonari.io import SUFFIXES, read, write


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


class Interrupted(BaseException):
    """Like KeyboardInterrupt, this is not an Exception."""


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_interrupted_write_leaves_no_trace(
    tmp_path: Path, suffix: str, existing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, array = tmp_path / f"points{suffix}", points(suffix)
    if existing:
        write(path, array)
    before = path.read_bytes() if existing else None
    seen = []

    def broken(given: np.ndarray):
        yield 0, np.ascontiguousarray(given[:5])
        seen.extend(os.listdir(tmp_path))
        raise Interrupted

    for name in ("bin", "hdf5", "npy", "vecs"):
        monkeypatch.setattr(f"tonari.io.formats.{name}.pieces", broken)
    with pytest.raises(Interrupted):
        write(path, array[::-1])
    assert any(name.endswith(".tmp") for name in seen)  # the exception was raised in the middle
    assert os.listdir(tmp_path) == ([path.name] if existing else [])
    assert (path.read_bytes() if existing else None) == before


def test_failed_rename_leaves_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.fbin"
    write(path, points(".fbin"))
    before = path.read_bytes()

    def refuse(source: object, target: object) -> None:
        raise OSError("disk gone")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk gone"):
        write(path, points(".fbin", (2, 2)))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.fbin"]


def test_bytes_reach_the_disk_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append(("fsync", os.fstat(fd).st_size)), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *names: (calls.append(("replace", 0)), replace(*names)))
    write(tmp_path / "a.u8bin", np.zeros((3, 2), np.uint8))
    assert calls[:2] == [("fsync", 14), ("replace", 0)]
    assert [what for what, _ in calls[2:]] == ["fsync"]  # of the directory, which contains the new name


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links are POSIX")
def test_new_file_is_as_readable_as_any_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    link = tmp_path / "link.fbin"
    link.symlink_to(tmp_path / "target.fbin")
    write(link, points(".fbin"))
    assert link.is_symlink()
    assert (tmp_path / "target.fbin").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(sys.platform == "win32", reason="os.pathconf is POSIX")
def test_the_longest_name_there_can_be(tmp_path: Path) -> None:
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    path = tmp_path / f"{'長' * 80}{'x' * (longest - 245)}.fbin"
    write(path, points(".fbin"))
    assert_same(read(path), points(".fbin"))
