"""Rows of results of the exact engine on GPUs: their columns, verdicts, what the engine reported, and their text.

Every contestant has rows of its own: ``who`` is ``tonari`` and what of it, or a peer. ``ratio`` is a peer's time over
ours. A bar stands in a row of ours: ``bar_on`` says on what, ``value`` what was measured, ``passed`` whether it is at
least (of times and bytes: at most) ``bar``. Bars hold for full sizes on the machine they were set for; elsewhere
``passed`` is empty. A row without seconds has a note that says why: ``not reached``, a peer that is not installed,
``out of memory``, ``WRONG`` or ``FAILED``. The last three count as wrong where they are ours.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import report
from .select_device import Timing

RESULTS = report.RESULTS.with_name("exact_gpu.csv")
COLUMNS = (
    "date",
    "machine",
    "gpus",
    "versions",
    "commit",
    "case",
    "who",
    "n",
    "m",
    "d",
    "k",
    "dtype",
    "data",
    "prepared",
    "scale",
    "repeats",
    "rows_timed",
    "seconds_median",
    "seconds_min",
    "seconds_max",
    "spread",
    "pairs_per_s",
    "tflops",
    "gemm_tflops",
    "gemm_d_tflops",
    "fraction_gemm",
    "gbps",
    "copy_gbps",
    "pcie_gbps",
    "fraction_copy",
    "rungs",
    "proof",
    "proved",
    "recall",
    "ratio",
    "bar_on",
    "bar",
    "value",
    "passed",
    "note",
)


@dataclass(frozen=True)
class Bar:
    """What a measurement is held to: at least ``bound``, or at most, on machines whose name contains ``home``."""

    on: str
    bound: float
    most: bool = False
    home: str = "H100"

    def verdict(self, value: float, title: str, scale: float) -> dict[str, Any]:
        """The columns of a verdict."""
        judged = scale == 1 and self.home in title
        passed = (value <= self.bound if self.most else value >= self.bound) if judged else None
        return {"bar_on": self.on, "bar": self.bound, "value": value, "passed": passed}


def seconds_of(timing: Timing) -> dict[str, Any]:
    """Columns about seconds alone."""
    return {
        "repeats": timing.repeats,
        "seconds_median": timing.median,
        "seconds_min": timing.least,
        "seconds_max": timing.most,
        "spread": (timing.most - timing.least) / timing.median,
    }


class _Reports(logging.Handler):
    """Keeps the reports that the engine logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.found += [argument for argument in arguments if hasattr(argument, "rows_by_precision")]


@contextlib.contextmanager
def reports() -> Iterator[list[Any]]:
    """What the engine reports of the searches inside the block."""
    logger, handler = logging.getLogger("tonari"), _Reports()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def levels_of(found: Sequence[Any]) -> str | None:
    """Rows certified at each rung, all reports together; None without a report."""
    if not found:
        return None
    total: dict[str, int] = {}
    for one in found:
        for precision, rows in one.rows_by_precision.items():
            total[precision] = total.get(precision, 0) + rows
    return " ".join(f"{precision}={rows}" for precision, rows in total.items())


def line_of(row: dict[str, Any]) -> str:
    """A row as text."""
    what = f"{row['case']:16} {row['who']:28} {row['m']:>8} x {row['n']:<9} d={row['d']:<4} k={row['k']:<4}"
    if "seconds_median" in row:
        sliced = "*" if row.get("rows_timed") else ""
        what += f" {row['seconds_median'] * 1e3:10.4g} ms{sliced} ±{row['spread']:.0%}"
    if "tflops" in row:
        what += f" {row['tflops']:7.4g} TFLOP/s"
    for name in ("rungs", "recall", "ratio", "note"):
        if row.get(name) is not None:
            what += f" {name} {row[name]:.4g}" if isinstance(row[name], float) else f" {row[name]}"
    if row.get("bar_on"):
        verdict = {True: "pass", False: "MISS", None: "not judged"}[row["passed"]]
        what += f" | {row['bar_on']} {row['value']:.4g}, bar {row['bar']:.4g}: {verdict}"
    return what
