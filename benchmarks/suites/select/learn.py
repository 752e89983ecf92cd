"""The table by which ``auto`` chooses, learnt from the measured grid: the method of least cost for each cell.

The cost of a method is its seconds on random rows, or its seconds on descending rows divided by 1.5 if that is more:
descending rows may take half as long again. Newly measured cells replace cells of the table; all others stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...harness.machine import ROOT
from ...harness.rows import Row
from .bars import WITHIN
from .grid import BESIDE

TABLE = ROOT / "src" / "tonari" / "select" / "auto_table.json"
BYTES = {"float32": 4, "float16": 2, "float64": 8, "uint8": 1}
GRID = "grid-"
CELL = ("device", "rows", "n", "k", "bytes")


def learn(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return entries {device, rows, n, k, bytes, method, options}, made from the newest run of each cell."""
    entries = []
    for cell, name, _ in _winners(rows):
        method, options = json.loads(name)
        entries.append(dict(zip(CELL, cell, strict=True)) | {"method": method, "options": options})
    return entries


def decisive(rows: Iterable[Row]) -> list[Row]:
    """Return the rows from which the table's entries are made: in each cell, the rows of the method of least cost."""
    return [row for _, _, found in _winners(rows) for row in found]


def _winners(rows: Iterable[Row]) -> Iterator[tuple[tuple[Any, ...], str, list[Row]]]:
    """Return, from the newest run of each cell, the rows of the method of least cost.

    Methods that were not timed on descending rows were too slow on random ones to be considered.
    """
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        named = row["parameters"].get("method") not in (None, "auto") and row["stage"] != BESIDE
        if row["case"].startswith(GRID) and named and row["seconds_median"] is not None:
            cell = row["device"], row["m"], row["n"], row["k"], BYTES[row["dtype"]]
            cells.setdefault(cell, []).append(row)
    for cell, measured in sorted(cells.items()):
        last = max(measured, key=lambda row: row["date"])
        seconds: dict[str, dict[str, Row]] = {}
        for row in measured:
            if (row["date"], row["machine"]) == (last["date"], last["machine"]):
                options = {name: value for name, value in row["parameters"].items() if name not in ("method", "nan")}
                name = json.dumps([row["parameters"]["method"], options], sort_keys=True)
                seconds.setdefault(name, {})[row["data"]] = row
        costs = {name: _cost(found) for name, found in seconds.items() if {"random", "descending"} <= set(found)}
        if costs:
            best = min(costs, key=costs.__getitem__)
            yield cell, best, list(seconds[best].values())


def _cost(found: dict[str, Row]) -> float:
    return max(float(found["random"]["seconds_median"]), WITHIN * float(found["descending"]["seconds_median"]))


def merge(path: Path, entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write new entries into the table, in place of older entries for the same cells; return all entries."""
    old = json.loads(path.read_text()) if path.exists() else []
    cells = {tuple(entry[name] for name in CELL): entry for entry in [*old, *entries]}
    merged = [cells[cell] for cell in sorted(cells)]
    lines = ",\n".join("  " + json.dumps(entry) for entry in merged)
    path.write_text(f"[\n{lines}\n]\n")
    return merged
