"""The figures of gieseke2014 from rows of results: of each case and device the newest run counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...harness.plots import Curves, Panel, draw, where
from ...harness.rows import Row, newest

NAME = "gieseke2014"
TITLES = {
    "2": "height of the tree (figure 2)",
    "3a": "queries sorted or not (figure 3a)",
    "5": "neighbours (figure 5)",
    "6": "points (figure 6)",
}
# Figure -> what its horizontal axis is, and what that is called.
AXES = {"2": ("height", "height of the tree"), "3a": ("m", "queries"), "5": ("k", "k"), "6": ("n", "points")}


def draw_all(rows: Sequence[Row], folder: Path) -> Iterator[Path]:
    """Draw the figures on each device that has rows."""
    found = newest([row for row in rows if row["suite"] == NAME], "device", "case")
    for device in ("cpu", "cuda"):
        for figure, title in TITLES.items():
            own = [row for row in found if row["device"] == device and row["figure"] == figure]
            target = folder / f"kdtree-{NAME}-fig{figure}-{device}.svg"
            if own and draw(target, panels(figure, own), f"{title}; {where(own[-1])}, {own[-1]['commit']}"):
                yield target


def panels(figure: str, rows: Sequence[Row]) -> list[Panel]:
    """One panel for each case of a figure."""
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        drawn: Curves = {}
        for name, x, y in curves(figure, own):
            drawn.setdefault(name, []).append((x, y))
        found.append(Panel(f"d = {own[0]['d']}", AXES[figure][1], "microseconds per query", drawn, log_x=figure != "2"))
    return found


def series_of(figure: str, row: Row) -> str:
    """The curve that a row is a point of."""
    name = str(row["who"])
    if figure == "3a":
        return "sorted by leaf" if row["extras"]["sort"] else "as they came"
    return f"{name}, d = {row['d']}" if figure == "2" else name


def curves(figure: str, rows: Sequence[Row]) -> Iterator[tuple[str, float, float]]:
    """(series, x, microseconds per query) of rows."""
    axis = AXES[figure][0]
    for row in rows:
        place: Any = row["extras"].get(axis) if axis == "height" else row[axis]
        if row["seconds_median"] and place is not None:
            yield series_of(figure, row), float(place), 1e6 * row["seconds_median"] / row["m"]
