"""Recall against time, drawn from rows of results.

The newest run of each case, device and contestant is drawn, since contestants may be measured in separate runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...harness.plots import Curves, Figure, Panel, where
from ...harness.rows import Row, newest

CURVE = "curve-"


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Return a figure for each device that has rows."""
    whole = [row for row in rows if row["seconds_median"] and row["scale"] == 1 and row["case"].startswith(CURVE)]
    found = newest(whole, "device", "case", "who")
    for device in ("cpu", "cuda"):
        own = [row for row in found if row["device"] == device]
        if own:
            heading = f"recall against time; {where(own[-1])}, {own[-1]['commit']}"
            yield Figure(f"nn_descent-recall-{device}", heading, own, panels(own))


def panels(rows: Sequence[Row]) -> list[Panel]:
    """Return one panel for each data set."""
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        curves: Curves = {}
        for row in own:
            curves.setdefault(row["who"], []).append((row["extras"]["recall_10"], row["seconds_median"]))
        curves = {name: sorted(places) for name, places in curves.items()}
        title = f"{case.removeprefix(CURVE)}, {own[0]['n']:,} x {own[0]['d']}"
        found.append(Panel(title, "recall@10", "seconds", curves, log_x=False))
    return found
