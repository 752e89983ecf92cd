"""Results: one aligned table on the screen, one line a row in a CSV file that only grows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results" / "exact_cpu.csv"

COLUMNS = (
    "date",
    "machine",
    "isa",
    "threads",
    "commit",
    "versions",
    "case",
    "n",
    "m",
    "d",
    "k",
    "metric",
    "dtype",
    "prepared",
    "scale",
    "repeats",
    "seconds_median",
    "seconds_min",
    "seconds_max",
    "peer",
    "peer_blas_core",
    "peer_seconds",
    "peer_rows",
    "peer_recall",
    "ratio",
    "bar",
    "passed",
    "gflops",
    "ceiling_gflops",
    "ceiling",
    "fraction",
    "verified",
)


def append(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str] = COLUMNS) -> None:
    """Add rows to the CSV file of these columns, with its header if it is new.

    Raises
    ------
    ValueError
        The file has another header, or a row another column: nothing is written then.
    """
    for row in rows:
        unknown = set(row) - set(columns)
        if unknown:
            raise ValueError(f"no such columns: {sorted(unknown)}")
    new = not path.exists() or path.stat().st_size == 0
    if not new:
        with path.open(newline="") as file:
            header = next(csv.reader(file))
        if tuple(header) != tuple(columns):
            raise ValueError(f"{path} has other columns than these results; move it away: {header}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as aligned text: ours, the peer, the bar, the ceiling."""
    header = (
        "case",
        "isa",
        "k",
        "seconds",
        "spread",
        "peer",
        "seconds",
        "recall",
        "ratio",
        "bar",
        "",
        "GFLOP/s",
        "ceiling",
    )
    lines = [(*header, "proved")]
    for row in rows:
        spread = (row["seconds_max"] - row["seconds_min"]) / row["seconds_median"]
        line = [row["case"], row["isa"], str(row["k"]), _seconds(row["seconds_median"]), f"{spread:.0%}"]
        if "peer" in row:
            line += [row["peer"], _seconds(row["peer_seconds"]) + ("*" if row["peer_rows"] else "")]
            line += ["" if row["peer_recall"] is None else f"{row['peer_recall']:.4f}", f"{row['ratio']:.2f}x"]
            line += ["", ""] if row["bar"] is None else [f"{row['bar']:.3g}x", "pass" if row["passed"] else "MISS"]
        else:
            line += ["no peer", "", "", "", "", ""]
        line += [f"{row['gflops']:.1f}", f"{row['fraction']:.0%} of {row['ceiling_gflops']:.0f} ({row['ceiling']})"]
        lines.append((*line, f"{row['verified']} rows"))
    text = aligned(lines)
    if any(row.get("peer_rows") for row in rows):
        text += "\n* measured on a slice of the queries and scaled"
    return text


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _seconds(value: float) -> str:
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"
