"""Helpers for tests of the benchmarks: a machine with fixed times, its runs and cases, and a file of descriptors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tonari
from benchmarks.harness import case, device, run
from benchmarks.harness.datasets import photographs


class Still(device.Cpu):
    """A machine with fixed times: every call takes `seconds`, and rates are 10 and 20 GB/s."""

    def __init__(
        self,
        seconds: Callable[[], float] = lambda: 0.001,
        *,
        title: str = "a machine, made up",
        kind: str = "cpu",
        threads: int | None = 2,
        slice_rows: int = 256,
    ) -> None:
        self.kind, self.slice_rows, self._seconds, self._title = kind, slice_rows, seconds, title
        self.threads = threads if kind == "cpu" else None

    def title(self) -> str:
        return self._title

    def isa(self) -> str | None:
        return "avx512" if self.kind == "cpu" else None

    def once(self, call: Callable[[], object]) -> float:
        call()
        return self._seconds()

    def settle(self) -> None:
        pass

    def memory(self) -> int:
        return 1 << 30

    def read_rate(self) -> float:
        return 1e10

    def copy_rate(self) -> float:
        return 2e10


def a_run(library: Any = tonari, **changes: Any) -> run.Run:
    """Make a run on a machine of two threads with fixed times, with everything in host memory."""
    options: dict[str, Any] = {"suite": "tests", "device": Still(), "where": "cpu", "repeats": 2}
    return run.Run(tonari=library, **options | changes)


def a_case(**changes: Any) -> case.Case:
    """Make a small search that does nothing; ``changes`` replace its fields."""
    options: dict[str, Any] = {"name": "tiny", "device": "cpu", "n": 500, "m": 60, "d": 3, "k": 5}
    return case.Case(**options | {"work": lambda run, case: None} | changes)


def done(opened: run.Run, one: case.Case) -> run.Run:
    """Run the case in a run, and return the run."""
    opened.guarded(one, "tonari", lambda: one.work(opened, one))
    return opened


def notes(opened: run.Run) -> str:
    """Return all notes of a run."""
    return " ".join(str(row.get("note")) for row in opened.rows)


def made_up_descriptors(rows: int, folder: Path, monkeypatch: Any) -> np.ndarray:
    """Write a file of made-up descriptors, set TONARI_SIFT to its path, and return the descriptors."""
    found = np.random.default_rng(5).integers(0, 256, (rows, 128), dtype=np.uint8)
    photographs.write_bvecs(folder / "rows.bvecs", found)
    monkeypatch.setenv("TONARI_SIFT", str(folder / "rows.bvecs"))
    return found
