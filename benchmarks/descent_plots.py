"""Figures and tables of approximate graphs, drawn from the rows of the results file.

Of each case, device and contestant the newest run counts, since contestants may be measured by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .descent_build import DESCENT
from .kdtree_plots import read
from .select_plots import IMAGES, Curves, Panel, draw

CURVE = "curve-"


def newest(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each case, device and contestant those of its last run that have seconds."""
    found = [row for row in rows if row["seconds_median"] and float(row["scale"]) == 1]
    last: dict[tuple[str, ...], str] = {}
    for row in found:
        last[_key(row)] = max(last.get(_key(row), ""), row["date"])
    return [row for row in found if row["date"] == last[_key(row)]]


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["device"], row["case"], row["who"]


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """One panel for the curves of each data set."""
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        curves: Curves = {}
        for row in own:
            curves.setdefault(row["who"], []).append((float(row["recall_10"]), float(row["seconds_median"])))
        curves = {name: sorted(places) for name, places in curves.items()}
        title = f"{case.removeprefix(CURVE)}, {int(own[0]['n']):,} x {own[0]['d']}"
        found.append(Panel(title, "recall@10", "seconds", curves, log_x=False))
    return found


def draw_all(path: Path, folder: Path = IMAGES) -> list[Path]:
    """Draw the curves of each device that has rows; the files."""
    rows = [row for row in newest(read(path)) if row["case"].startswith(CURVE)]
    drawn = []
    for device in ("cpu", "cuda"):
        own = [row for row in rows if row["device"] == device]
        if not own:
            continue
        cores = f", {own[-1]['threads']} threads" if own[-1]["threads"] else ""
        heading = f"recall against time; {own[-1]['machine']}{cores}, {own[-1]['date'][:10]}, {own[-1]['commit']}"
        target = folder / f"descent-recall-{device}.svg"
        if draw(target, panels(own), heading):
            drawn.append(target)
    return drawn


def tables(path: Path) -> str:
    """Markdown of docs/graphs.md: for each device the cases and their bars, then the points of the curves."""
    rows = newest(read(path))
    parts = []
    for device in ("cpu", "cuda"):
        own = [row for row in rows if row["device"] == device]
        cases = [row for row in own if not row["case"].startswith(CURVE)]
        curves = [row for row in own if row["case"].startswith(CURVE)]
        if cases:
            parts.append(f"{device}: cases\n\n" + _table(cases, bars=True))
        if curves:
            parts.append(f"{device}: curves\n\n" + _table(curves, bars=False))
    return "\n\n".join(parts)


def _table(rows: Sequence[dict[str, Any]], *, bars: bool) -> str:
    names = ["case", "who", "seconds", "recall@10 (95 %)", "recall@k", "rounds", "GB beyond the input"]
    names += ["ratio", "bars"] if bars else ["parameters"]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for group in _groups(rows) if bars else [[row] for row in rows]:
        row = group[0]
        seconds = f"{float(row['seconds_median']):.4g}" + (
            "*" if row["rows_timed"] else f" ± {float(row['spread']):.0%}"
        )
        cells = [row["case"], f"**{row['who']}**" if row["who"] == DESCENT else row["who"], seconds, _recall(row)]
        cells += [f"{float(row['recall_k']):.4f}" if row["recall_k"] else "", row["rounds"]]
        cells.append(f"{float(row['peak_bytes']) / 1e9:.3g}" if row["peak_bytes"] else "")
        if bars:
            ratio = f"{float(row['ratio']):.3g}" if row["ratio"] else ""
            cells += [ratio, "; ".join(_verdict(one) for one in group if one["bar_on"])]
        else:
            cells.append(row["parameters"])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _groups(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of one contestant on one case together: a row for each bar."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(_key(row), []).append(row)
    return list(found.values())


def _recall(row: dict[str, Any]) -> str:
    if not row["recall_10"]:
        return ""
    middle, low, high = (float(row[f"recall_10{end}"]) for end in ("", "_low", "_high"))
    return f"{middle:.4f}" + (f" ({low:.4f}-{high:.4f})" if low < high else "")


def _verdict(row: dict[str, Any]) -> str:
    verdict = {"True": "met", "False": "missed", "": "not judged"}[row["passed"]]
    return f"{row['bar_on']} {row['value']} of {row['bar']}: {verdict}"
