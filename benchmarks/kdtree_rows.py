"""Rows of results of the k-d tree: their columns and their text; bars and verdicts are those of ``exact_gpu_rows``.

Every contestant has rows of its own: ``who`` is ``tonari`` and what of it, or a peer. ``ratio`` is a contestant's time
over the tree's. ``rows_timed`` says that only so many queries were searched and the time was scaled to all ``m``.
``height``, ``leaf`` and ``sort`` are the plan's; ``leaves`` and ``nodes`` are those that a query visits on average.
``figure`` is the paper's whose point this is, ``stage`` what was timed: a search on a prepared index, a build, a call
with everything in it, or a stream. A row without seconds has a note that says why.
"""

from __future__ import annotations

from typing import Any

from . import report

RESULTS = report.RESULTS.with_name("kdtree.csv")
LIBRARIES = ("tonari", "numpy", "scipy", "pykdtree", "torch", "triton")
COLUMNS = (
    "date",
    "machine",
    "device",
    "isa",
    "threads",
    "versions",
    "commit",
    "case",
    "figure",
    "who",
    "stage",
    "n",
    "m",
    "d",
    "k",
    "dtype",
    "data",
    "height",
    "leaf",
    "sort",
    "scale",
    "repeats",
    "rows_timed",
    "seconds_median",
    "seconds_min",
    "seconds_max",
    "spread",
    "queries_per_s",
    "leaves",
    "nodes",
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


def line_of(row: dict[str, Any]) -> str:
    """A row as text."""
    what = f"{row['case']:22} {row['who']:26} {row['m']:>9} x {row['n']:<8} d={row['d']:<3} k={row['k']:<3}"
    if row.get("height") is not None:
        what += f" h={row['height']:<2}" + (" unsorted" if row.get("sort") is False else "")
    if "seconds_median" in row:
        sliced = "*" if row.get("rows_timed") else ""
        what += f" {row['seconds_median'] * 1e3:10.4g} ms{sliced} ±{row['spread']:.0%}"
    if "queries_per_s" in row:
        what += f" {row['queries_per_s']:9.3g}/s"
    for name in ("leaves", "recall", "ratio", "note"):
        if row.get(name) is not None:
            what += f" {name} {row[name]:.4g}" if isinstance(row[name], float) else f" {row[name]}"
    if row.get("bar_on"):
        verdict = {True: "pass", False: "MISS", None: "not judged"}[row["passed"]]
        what += f" | {row['bar_on']} {row['value']:.4g}, bar {row['bar']:.4g}: {verdict}"
    return what
