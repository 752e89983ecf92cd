"""The figures of gieseke2014, drawn from the newest run of each case on each device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...harness.plots import Curves, Figure, Panel, where
from ...harness.rows import Row, newest
from ...suites.kdtree.search import TREE

NAME = "gieseke2014"
TITLES = {
    "2": "height of the tree (figure 2)",
    "3a": "queries sorted or not (figure 3a)",
    "4": "phases of the buffered traversal (figures 3b and 4)",
    "5": "neighbours (figure 5)",
    "6": "points (figure 6)",
}
# For each figure: the column on its horizontal axis, and the label of the axis.
AXES = {
    "2": ("height", "height of the tree"),
    "3a": ("m", "queries"),
    "4": ("m", "queries"),
    "5": ("k", "k"),
    "6": ("n", "points"),
}
PHASES = {"find": "finding leaves", "process": "comparing queries with leaves", "sort": "sorting by leaf"}


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Return the figures for each device that has rows."""
    found = newest([row for row in rows if row["suite"] == NAME], "device", "case")
    for device in ("cpu", "cuda"):
        for figure, title in TITLES.items():
            own = [row for row in found if row["device"] == device and row["figure"] == figure]
            if own:
                heading = f"{title}; {where(own[-1])}, {own[-1]['commit']}"
                yield Figure(f"kdtree-{NAME}-fig{figure}-{device}", heading, own, panels(figure, own))


def panels(figure: str, rows: Sequence[Row]) -> list[Panel]:
    """Return one panel for each case of a figure."""
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        drawn: Curves = {}
        for name, x, y in curves(figure, own):
            drawn.setdefault(name, []).append((x, y))
        found.append(Panel(f"d = {own[0]['d']}", AXES[figure][1], "microseconds per query", drawn, log_x=figure != "2"))
    return found


def series_of(figure: str, row: Row) -> str:
    """Return the name of the curve on which a row is drawn."""
    name = str(row["who"])
    if figure == "3a":
        order = "sorted by leaf" if row["extras"]["sort"] else "as they came"
        return order if name == TREE else f"buffered, {order}"
    return f"{name}, d = {row['d']}" if figure == "2" else name


def curves(figure: str, rows: Sequence[Row]) -> Iterator[tuple[str, float, float]]:
    """Return (name of the curve, x, microseconds per query) for each row."""
    axis = AXES[figure][0]
    for row in rows:
        place: Any = row["extras"].get(axis) if axis == "height" else row[axis]
        if row["seconds_median"] and place is not None:
            for series, seconds in parts_of(figure, row).items():
                yield series, float(place), 1e6 * seconds / row["m"]


def parts_of(figure: str, row: Row) -> dict[str, float]:
    """Return a row's seconds for each curve, as {curve name: seconds}.

    A row belongs to one curve; in figure 4, to the curve of the total and to one for each phase.
    """
    if figure != "4":
        return {series_of(figure, row): row["seconds_median"]}
    parts = {"everything": row["seconds_median"]}
    parts |= {name: row["extras"][f"{part}_seconds"] for part, name in PHASES.items()}
    return {name: seconds for name, seconds in parts.items() if seconds > 0}
