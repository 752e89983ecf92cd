"""Arguments: k, threads, memory and paths of outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tonari.inputs import (
    check_k,
    check_output_path,
    check_threads,
    parse_memory,
)


def test_check_k() -> None:
    assert check_k(3, 3, without_self=False) == 3
    assert type(check_k(np.int64(1), 3, without_self=True)) is int
    for bad in (True, np.True_, 3.0, "3", None):
        with pytest.raises(TypeError, match=r"k=.*expected a whole number"):
            check_k(bad, 10, without_self=False)
    for small in (0, -2):
        with pytest.raises(ValueError, match="the smallest k is 1"):
            check_k(small, 10, without_self=False)
    with pytest.raises(ValueError, match=r"k=11: the largest k is 10, as there are 10 points$"):
        check_k(11, 10, without_self=False)
    with pytest.raises(ValueError, match=r"k=10: the largest k is 9, as there are 10 points and a point is not"):
        check_k(10, 9, without_self=True)
    with pytest.raises(ValueError, match="k=1: the largest k is 0, as there is 1 point and"):
        check_k(1, 0, without_self=True)


def test_check_threads() -> None:
    assert check_threads(None) is None
    assert check_threads(np.int32(7)) == 7
    for bad in (True, 2.0, "2"):
        with pytest.raises(TypeError, match="threads="):
            check_threads(bad)
    for small in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            check_threads(small)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (None, None),
        (5, 5),
        (np.int64(2**40), 2**40),
        ("1B", 1),
        ("3 kB", 3000),
        ("3KiB", 3072),
        ("2GB", 2 * 10**9),
        ("2GiB", 2**31),
        (" 0.5 MiB ", 2**19),
        ("512mb", 512 * 10**6),
        ("1TB", 10**12),
        ("1tib", 2**40),
    ],
)
def test_parse_memory(text: Any, size: int | None) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("bad", ["", "GB", "2", "2G", "2 G B", "-2GB", "1e9B", "2GB!", "1,5GB", "0MB", "0.1B", 0, -5])
def test_parse_memory_refuses(bad: Any) -> None:
    with pytest.raises(ValueError, match="memory="):
        parse_memory(bad)


@pytest.mark.parametrize("bad", [True, 2.5e9, b"2GB"])
def test_parse_memory_refuses_types(bad: Any) -> None:
    with pytest.raises(TypeError, match="a whole number of bytes or a string"):
        parse_memory(bad)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_check_output_path_refuses_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "link.npz").symlink_to("pipe.npz")
    (tmp_path / "null.npz").symlink_to("/dev/null")
    for name in ("pipe.npz", "link.npz", "null.npz"):
        with pytest.raises(FileExistsError, match=rf"{name}: is a device, a pipe or a socket; name a regular file"):
            check_output_path(tmp_path / name, (".npz",))
    (tmp_path / "new.npz").symlink_to("none.npz")  # the target of the link is created
    assert check_output_path(tmp_path / "new.npz", (".npz",)) == tmp_path / "new.npz"


def test_check_output_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "graph.NPZ"
    assert check_output_path(str(target), (".npz",)) == target
    assert not target.exists()
    target.write_bytes(b"old")
    assert check_output_path(target, {".npy", ".npz"}) == target
    with pytest.raises(ValueError, match=r"has the suffix '.txt', expected .npy, .npz"):
        check_output_path(tmp_path / "graph.txt", (".npz", ".npy"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        check_output_path(tmp_path / "no" / "graph.npz", (".npz",))
    with pytest.raises(NotADirectoryError, match="is a file"):
        check_output_path(target / "graph.npz", (".npz",))
    (tmp_path / "dir.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        check_output_path(tmp_path / "dir.npz", (".npz",))
    with pytest.raises(OSError, match="too long"):
        check_output_path(tmp_path / f"{'x' * 5000}.npz", (".npz",))
    monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK))
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_output_path(target, (".npz",))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert check_output_path("here.npz", (".npz",)) == Path("here.npz")
