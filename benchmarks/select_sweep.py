"""A paper's experiment as a list of points: each is one figure's curve at one place.

Points of several figures that ask for the same measurement share it. Results of all figures lie in one file; a figure
is drawn from the newest run that measured it on that device.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import select_data
from .select_plots import Curves, Panel
from .select_proof import Proof
from .select_run import Run, case_columns, say

FIELDS_OF_NUMBERS = {"rows": int, "n": int, "k": int, "seconds_median": float}


@dataclass(frozen=True)
class Point:
    """One measurement of one figure: seconds, or if ``counted`` what the method's counters tell."""

    figure: str
    series: str
    rows: int
    n: int
    k: int
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    data: str = "random"
    counted: bool = False

    def key(self) -> tuple[Any, ...]:
        """Equal for points that ask for the same measurement."""
        options = json.dumps(self.options, sort_keys=True)
        return self.rows, self.n, self.k, self.method, options, self.data, self.counted


@dataclass(frozen=True)
class Paper:
    """One paper's experiment.

    Attributes
    ----------
    name : the mode in the results file and the word on the command line
    figures : its figures and tables; those in ``tables`` are printed and not drawn
    points : what to measure in a run
    panels : a figure's axes from its rows
    summary : what is kept of a counted point's ``Counters``
    """

    name: str
    figures: tuple[str, ...]
    points: Callable[[Run], Iterable[Point]]
    panels: Callable[[str, Sequence[dict[str, Any]]], list[Panel]]
    summary: Callable[[Any, Point], dict[str, Any]] | None = None
    tables: Mapping[str, Callable[[Sequence[dict[str, Any]]], str]] = field(default_factory=dict)


def sweep(run: Run, paper: Paper, figures: Sequence[str]) -> list[dict[str, Any]]:
    """Measure a paper's points of some figures, in their order; rows of results, one for each."""
    points = [point for point in paper.points(run) if point.figure in figures and point.k <= point.n]
    source = _Source(run, points)
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    results = []
    for point in points:
        key = point.key()
        if key not in known:
            say(f"{point.figure}, {point.series}: {point.rows} x {point.n}, k = {point.k}, {point.data}")
            known[key] = _measured(run, paper, point, source)
        results += run.write([known[key] | {"figure": point.figure, "series": point.series}])
    return results


class _Source:
    """Tensors of a sweep: random shapes share one array, and of real distances all are parts of the largest."""

    def __init__(self, run: Run, points: Sequence[Point]) -> None:
        self.device = run.device.kind
        self.values: dict[str, int] = {}
        self.largest: dict[str, tuple[int, int]] = {}
        for point in points:
            rows, n = self.largest.get(point.data, (0, 0))
            self.largest[point.data] = max(rows, point.rows), max(n, point.n)
            self.values[point.data] = max(self.values.get(point.data, 0), point.rows * point.n)
        self.made: dict[str, Any] = {}
        self.proofs: dict[tuple[Any, ...], Proof] = {}

    def proof(self, point: Point) -> Proof:
        key = point.data, point.rows, point.n, point.k
        if key not in self.proofs:
            self.proofs[key] = Proof(self.tensor(point), point.k)
        return self.proofs[key]

    def tensor(self, point: Point) -> Any:
        data = point.data
        if data in select_data.POOLED:
            if data not in self.made:
                self.made[data] = select_data.Pool(self.values[data], "float32", self.device, data)
            return self.made[data].view(point.rows, point.n)
        if data not in self.made:
            self.made[data] = select_data.make(data, *self.largest[data], "float32", self.device)
        return self.made[data][: point.rows, : point.n]


def _measured(run: Run, paper: Paper, point: Point, source: _Source) -> dict[str, Any]:
    options, summary = dict(point.options), paper.summary
    proof = source.proof(point)
    what = case_columns(paper.name, proof, point.method, options, data=point.data)
    if not point.counted or summary is None:
        return what | run.measure(proof, point.method, options, least=3, most=5)

    def count() -> dict[str, Any]:
        from tonari.select.request import Counters

        counters = Counters()
        found = run.call(proof.tensor, point.k, point.method, options | {"counters": counters}, "last")()
        return {"verified": proof.check(found), "counters": json.dumps(summary(counters, point))}

    return what | run.guarded(f"counters of {point.method} {options}", count)


# --- what was measured -------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a results file: numbers are numbers (None where nothing was measured), options and counters dicts."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        for name, kind in FIELDS_OF_NUMBERS.items():
            row[name] = kind(row[name]) if row[name] else None
        for name in ("counters", "options"):
            row[name] = json.loads(row[name]) if row[name] else {}
    return rows


def newest(rows: Iterable[dict[str, Any]], mode: str, figure: str, device: str) -> list[dict[str, Any]]:
    """The rows of one figure from the newest run that measured any of it on that kind of device."""
    found = [row for row in rows if (row["mode"], row["figure"], row["device"]) == (mode, figure, device)]
    measured = [row for row in found if row["seconds_median"] is not None or row["counters"]]
    if not measured:
        return []
    # Runs of one minute on two machines are told apart by the machine.
    last = max(measured, key=lambda row: row["date"])
    return [row for row in found if (row["date"], row["machine"]) == (last["date"], last["machine"])]


def curves(rows: Iterable[dict[str, Any]], x: str, y: Callable[[dict[str, Any]], float | None]) -> Curves:
    """Points of every series by a column; places without a measurement are left out."""
    found: Curves = {}
    for row in rows:
        height = y(row)
        if height is not None:
            found.setdefault(row["series"], []).append((row[x], height))
    return {series: sorted(places) for series, places in found.items()}


def seconds(row: dict[str, Any]) -> float | None:
    """Median seconds of a row."""
    value: float | None = row["seconds_median"]
    return value


def improvements(found: Curves, base: str) -> Curves:
    """Seconds of the series ``base`` over those of the others, where both were measured."""
    reference = dict(found.get(base, []))
    return {
        series: [(x, reference[x] / y) for x, y in places if x in reference]
        for series, places in found.items()
        if series != base
    }
