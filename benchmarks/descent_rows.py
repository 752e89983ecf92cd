"""Rows of results of approximate graphs: their columns and their text; bars and verdicts are ``exact_gpu_rows``'.

Every contestant has rows of its own: ``who`` is ``tonari`` and what of it, or a peer; ``parameters`` is what it was
given beside the defaults. ``target`` is the recall that was asked for, ``estimate`` what the run measured itself,
``reached`` what it said of that, ``rounds``, ``phi`` and ``changed`` what it did (phi: sum of all distances after each
round). ``recall_10`` and ``recall_k`` are measured here, on ``proved`` rows, by distance, with 95 % intervals.
``peak_bytes`` is beyond the input; ``input_bytes`` is the input. ``ratio`` is a contestant's time over that of
NN-Descent; ``rows_timed`` says that only so many rows were searched and the time was scaled. ``compile_seconds`` were
spent before. A row without seconds has a note that says why.
"""

from __future__ import annotations

from typing import Any

from . import report

RESULTS = report.RESULTS.with_name("descent.csv")
LIBRARIES = ("tonari", "numpy", "pynndescent", "numba", "torch", "triton", "cuvs-cu13")
COLUMNS = (
    "date",
    "machine",
    "device",
    "isa",
    "threads",
    "versions",
    "commit",
    "case",
    "who",
    "n",
    "d",
    "k",
    "dtype",
    "data",
    "parameters",
    "target",
    "scale",
    "repeats",
    "rows_timed",
    "seconds_median",
    "seconds_min",
    "seconds_max",
    "spread",
    "compile_seconds",
    "recall_10",
    "recall_10_low",
    "recall_10_high",
    "recall_k",
    "recall_k_low",
    "recall_k_high",
    "estimate",
    "estimate_low",
    "estimate_high",
    "reached",
    "start",
    "rounds",
    "phi",
    "changed",
    "input_bytes",
    "peak_bytes",
    "proof",
    "proved",
    "ratio",
    "bar_on",
    "bar",
    "value",
    "passed",
    "note",
)


def parameters_of(given: dict[str, Any]) -> str:
    """What a contestant was given, as text."""
    return " ".join(f"{name}={value}" for name, value in given.items())


def report_columns(found: Any) -> dict[str, Any]:
    """Columns about a graph's own report, or none where it has none."""
    if found is None:
        return {}
    return {
        "estimate": found.estimate.by_distance,
        "estimate_low": found.estimate.low,
        "estimate_high": found.estimate.high,
        "reached": found.reached,
        "start": found.start,
        "rounds": len(found.rounds),
        "phi": " ".join(f"{one.phi:.6g}" for one in found.rounds),
        "changed": " ".join(str(one.changed) for one in found.rounds),
    }


def line_of(row: dict[str, Any]) -> str:
    """A row as text."""
    what = f"{row['case']:16} {row['who']:20} {row['n']:>9} x {row['d']:<4} k={row['k']:<3}"
    if "seconds_median" in row:
        sliced = "*" if row.get("rows_timed") else ""
        what += f" {row['seconds_median']:9.4g} s{sliced} ±{row['spread']:.0%}"
    if row.get("recall_10") is not None:
        what += f" recall@10 {row['recall_10']:.4f} ({row['recall_10_low']:.4f}-{row['recall_10_high']:.4f})"
        what += f" @k {row['recall_k']:.4f}"
    if row.get("peak_bytes") is not None:
        what += f" {row['peak_bytes'] / 1e9:.3g} GB"
    for name in ("rounds", "ratio", "parameters", "note"):
        if row.get(name):
            what += f" {name} {row[name]:.4g}" if isinstance(row[name], float) else f" {name} {row[name]}"
    if row.get("bar_on"):
        verdict = {True: "pass", False: "MISS", None: "not judged"}[row["passed"]]
        what += f" | {row['bar_on']} {row['value']:.4g}, bar {row['bar']:.4g}: {verdict}"
    return what
