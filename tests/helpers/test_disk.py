"""The disk that fails: the calls that it counts, where it ends the process, and the data that a power cut removes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.disk import Disk
from tonari.io._atomic import atomic, sync_directory


class Ended(BaseException):
    """Raised in place of SIGKILL."""


def end() -> None:
    raise Ended


def until(end_at: int | None, work: Callable[[], object], *, power_cut: bool = True) -> list[str]:
    """Work until the call at which the disk fails, and return the counted calls."""
    disk = Disk(end_at, power_cut=power_cut, end=end)
    disk.install()
    try:
        work()
    except Ended:
        assert len(disk.calls) == end_at
    finally:
        disk.remove()
    return disk.calls


@pytest.fixture(autouse=True)
def _nothing_stays_replaced() -> Iterator[None]:
    before = os.fsync, os.replace, open
    yield
    assert before == (os.fsync, os.replace, open)


def put(path: Path, text: bytes) -> None:
    with atomic(path) as file:
        file.write(text)


def test_the_calls_of_an_atomic_file(tmp_path: Path) -> None:
    calls = until(None, lambda: put(tmp_path / "a", b"new"))
    assert calls == ["open", "write", "fsync", "replace", "fsync"]
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("end_at", range(1, 7))
def test_an_atomic_file_is_old_or_new(end_at: int, power_cut: bool, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    calls = until(end_at, lambda: put(tmp_path / "a", b"new"), power_cut=power_cut)
    assert len(calls) == min(end_at, 5)
    # After the last fsync the name is on the disk; without a power cut, already after the previous call.
    assert (tmp_path / "a").read_bytes() == (b"new" if end_at > (5 if power_cut else 4) else b"old")


def test_a_write_ends_in_its_middle(tmp_path: Path) -> None:
    def work() -> None:
        with (tmp_path / "a").open("wb") as file:
            file.write(b"12345678")

    until(2, work, power_cut=False)
    assert (tmp_path / "a").read_bytes() == b"1234"


@pytest.mark.parametrize("synced", [False, True])
def test_bytes_without_fsync_are_lost(synced: bool, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")

    def work() -> None:
        with (tmp_path / "a").open("r+b", 0) as file:
            file.write(b"AB")
            os.fsync(file.fileno())
            file.write(b"CD")
            if synced:
                os.fsync(file.fileno())
        (tmp_path / "folder").mkdir()

    until(6 if synced else 5, work)
    assert (tmp_path / "a").read_bytes() == (b"ABCDre" if synced else b"AB\0\0re")


def test_a_file_without_any_fsync_is_empty(tmp_path: Path) -> None:
    def work() -> None:
        with (tmp_path / "a").open("wb") as file:
            file.write(b"all of it")
        sync_directory(tmp_path)
        (tmp_path / "folder").mkdir()

    until(4, work)
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.parametrize("synced", [False, True])
def test_names_without_fsync_of_their_directory_are_as_before(synced: bool, tmp_path: Path) -> None:
    for name in ("replaced", "removed"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "by").write_bytes(b"new")

    def work() -> None:
        (tmp_path / "folder").mkdir()
        os.replace(tmp_path / "by", tmp_path / "replaced")
        (tmp_path / "removed").unlink()
        if synced:
            sync_directory(tmp_path)
        (tmp_path / "last").mkdir()

    until(5 if synced else 4, work)
    found = {path.name: path.read_bytes() if path.is_file() else None for path in tmp_path.iterdir()}
    before = {"replaced": b"old", "removed": b"old", "by": b"new"}
    assert found == ({"replaced": b"new", "folder": None} if synced else before)
