"""Free memory of the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tonari.core.process import host_memory


def test_what_the_system_keeps_of_files_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:       32000 kB\nMemFree:         1000 kB\nMemAvailable:    9000 kB\n")
    monkeypatch.setattr(host_memory, "_MEMINFO", told)
    assert host_memory.free_host_memory() == 9000 * 1024


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="needs POSIX")
def test_elsewhere_free_pages_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "_MEMINFO", tmp_path / "nothing")
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert host_memory.free_host_memory() == 40960
