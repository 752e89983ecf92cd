"""Figures and tables of the k-d tree's results, drawn from the rows of the results file.

Of each figure and device the newest run counts; its machine, date and commit stand above the figure.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from . import kdtree_auto, kdtree_gieseke2014
from .select_plots import IMAGES, Curves, Panel, draw

TITLES = {
    "2": "height of the tree (figure 2)",
    "3a": "queries sorted or not (figure 3a)",
    "5": "neighbours (figure 5)",
    "6": "points (figure 6)",
}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a results file, as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def newest(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each case those of its last run on each device."""
    found = list(rows)
    last: dict[tuple[str, str], str] = {}
    for row in found:
        key = row["device"], row["case"]
        last[key] = max(last.get(key, ""), row["date"])
    return [row for row in found if row["date"] == last[row["device"], row["case"]]]


def panels(figure: str, rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """One panel for each case of a figure."""
    label = kdtree_gieseke2014.AXES[figure][1]
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        curves: Curves = {}
        for name, x, y in kdtree_gieseke2014.curves(figure, [row for row in rows if row["case"] == case]):
            curves.setdefault(name, []).append((x, y))
        d = next(row["d"] for row in rows if row["case"] == case)
        found.append(Panel(f"d = {d}", label, "microseconds per query", curves, log_x=figure != "2"))
    return found


def draw_all(path: Path, folder: Path = IMAGES) -> list[Path]:
    """Draw the paper's figures on each device that has rows; the files."""
    rows = newest(read(path))
    drawn = []
    for device in ("cpu", "cuda"):
        for figure, title in TITLES.items():
            own = [row for row in rows if row["device"] == device and row["figure"] == figure]
            if not own:
                continue
            cores = f", {own[-1]['threads']} threads" if own[-1]["threads"] else ""
            heading = f"{title}; {own[-1]['machine']}{cores}, {own[-1]['date'][:10]}, {own[-1]['commit']}"
            target = folder / f"kdtree-gieseke2014-fig{figure}-{device}.svg"
            if draw(target, panels(figure, own), heading):
                drawn.append(target)
    return drawn


def tables(path: Path) -> str:
    """Markdown of docs/kdtree.md: whole searches and their bars, rounds, and the cells where auto was off."""
    rows = newest(read(path))
    parts = []
    for device in ("cpu", "cuda"):
        own = [row for row in rows if row["device"] == device and row["seconds_median"]]
        searches = [row for row in own if not row["figure"] and not row["case"].startswith(("auto-", "rounds"))]
        rounds = [row for row in own if row["case"].startswith("rounds")]
        cells = [row for row in own if row["bar_on"] == kdtree_auto.ON]
        if searches:
            parts.append(f"{device}: searches\n\n" + _table(searches, ("case", "who", "stage", "m", "n")))
        if rounds:
            parts.append(f"{device}: rounds\n\n" + _table(rounds, ("who", "height", "leaves", "note")))
        if cells:
            off = [row for row in cells if float(row["value"]) > kdtree_auto.WITHIN]
            worst = max(float(row["value"]) for row in cells)
            text = f"{device}: auto is within {kdtree_auto.WITHIN} in {len(cells) - len(off)} of {len(cells)} cells"
            text += f", at worst {worst:.2f}"
            parts.append(text + ("\n\n" + _table(off, ("case", "n", "m", "value")) if off else ""))
    return "\n\n".join(parts)


def _table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    names = (*columns, "milliseconds", "spread", "ratio", "bar")
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        cells = [row[name] for name in columns]
        cells.append(f"{1e3 * float(row['seconds_median']):.4g}" + ("*" if row["rows_timed"] else ""))
        cells += [f"{float(row['spread']):.0%}", row["ratio"]]
        verdict = {"True": "met", "False": "missed", "": "not judged"}[row["passed"]]
        cells.append(f"{row['bar_on']} {row['value']} of {row['bar']}: {verdict}" if row["bar_on"] else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
