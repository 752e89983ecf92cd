"""The figures of wang2021, drawn from the newest run of each case, device and contestant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...harness.plots import Curves, Figure, Panel, where
from ...harness.rows import Row, newest

NAME = "wang2021"
# For each kind of case, which is the first part of its name: number and title of the figure.
FIGURES = {
    "phi": ("4", "φ after each round"),
    "ablation": ("5", "the selective update and its locks"),
    "curve": ("6", "recall against time"),
    "ggm": ("7", "two halves merged"),
}


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Return the figures for which rows exist."""
    found = newest([row for row in rows if row["suite"] == NAME and row["scale"] == 1], "device", "case", "who")
    for kind, (figure, title) in FIGURES.items():
        own = [row for row in found if row["case"].partition("-")[0] == kind and not row["note"]]
        if own:
            heading = f"{title} (figure {figure}); {where(own[-1])}, {own[-1]['commit']}"
            yield Figure(f"nn_descent-{NAME}-fig{figure}-cuda", heading, own, panels(kind, own))


def panels(kind: str, rows: Sequence[Row]) -> list[Panel]:
    """Return one panel for each data set."""
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        curves: Curves = {}
        for row in own:
            curves.setdefault(row["who"], []).append(_place(kind, row))
        curves = {name: sorted(places) for name, places in curves.items()}
        title = f"{case.partition('-')[2]}, {own[0]['n']:,} x {own[0]['d']}"
        axes = ("round", "sum of distances") if kind == "phi" else ("recall@10", "seconds")
        found.append(Panel(title, *axes, curves, log_x=False))
    return found


def _place(kind: str, row: Row) -> tuple[float, float]:
    extras = row["extras"]
    return (extras["round"], extras["phi"]) if kind == "phi" else (extras["recall_10"], row["seconds_median"])
