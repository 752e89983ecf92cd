"""Checksums by several threads while arrays are written equal those by one thread."""

from __future__ import annotations

import threading
import zlib

import numpy as np
import pytest

from tonari.shards import tuning
from tonari.shards.directory.workspace import checksums_beside, crc32_of


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("least", [1, 7, 4096, 1 << 20])
def test_checksums_are_those_of_zlib(least: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHECKED_AT_ONCE", least)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((31, 5)), np.empty((0, 3), np.int32), rng.integers(0, 9, (7, 3)).T, np.zeros(1)]
    worked: list[int] = []
    sums = checksums_beside(arrays, worked.append, threads)
    assert sorted(worked) == list(range(len(arrays)))
    assert sums == [zlib.crc32(array.tobytes()) for array in arrays] == [crc32_of(array) for array in arrays]


def test_checksums_are_computed_while_arrays_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "CHECKED_AT_ONCE", 100)
    seen, real = threading.Event(), zlib.crc32

    def noted(data: object) -> int:
        seen.set()
        return real(data)  # type: ignore[arg-type]

    monkeypatch.setattr(zlib, "crc32", noted)
    checksums_beside([np.zeros(100)], lambda at: None if seen.wait(10) else pytest.fail("written first"), 2)


def test_an_error_of_writing_is_raised() -> None:
    def write(at: int) -> None:
        if at:
            raise OSError("disk full")

    for threads in (1, 3):
        with pytest.raises(OSError, match="disk full"):
            checksums_beside([np.zeros(10), np.zeros(10)], write, threads)
