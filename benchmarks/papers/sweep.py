"""A paper's experiment with k-selection, as a list of points on the curves of its figures.

If several figures have the same point, it is measured once for all of them. A figure is drawn from the newest run that
measured it on that device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..harness.case import Case, Suite
from ..harness.datasets import selections
from ..harness.plots import Curves, Figure, Panel, where
from ..harness.proof.selection import PROOF, Proof
from ..harness.rows import Row
from ..harness.run import Run, say
from ..suites.select.measure import LIBRARIES, call_of, columns, measure, tried


@dataclass(frozen=True)
class Point:
    """The measurement of one point of a figure: the seconds of a selection or, if ``counted``, its counters."""

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
        """Return a key; points with equal keys share one measurement."""
        options = json.dumps(self.options, sort_keys=True)
        return self.rows, self.n, self.k, self.method, options, self.data, self.counted


@dataclass(frozen=True)
class Paper:
    """One paper's experiment.

    Attributes
    ----------
    figures : its figures and tables; those in ``tables`` are printed and not drawn
    points : function of the run that yields all measurements
    panels : function that makes the panels of a figure from its rows
    summary : function that makes the columns of a counted point from its ``Counters``
    devices : figure -> the devices that can measure it; other figures run on all devices
    rare : figure -> the devices on which it is measured only if its name is given
    cost : expected seconds of one figure
    """

    name: str
    figures: tuple[str, ...]
    points: Callable[[Run], Iterable[Point]]
    panels: Callable[[str, Sequence[Row]], list[Panel]]
    summary: Callable[[Any, Point], dict[str, Any]] | None = None
    tables: Mapping[str, Callable[[Sequence[Row]], str]] = field(default_factory=dict)
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rare: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cost: float = 60.0

    def suite(self, *others: Case, libraries: tuple[str, ...] = LIBRARIES) -> Suite:
        """Return the paper as a suite with a case for each figure, followed by other cases."""
        cases = [
            self._case(figure, device)
            for device in ("cpu", "cuda")
            for figure in self.figures
            if device in self.devices.get(figure, ("cpu", "cuda"))
        ]
        drawn = self.drawn
        return Suite(self.name, "select", (*cases, *others), libraries=libraries, figures=drawn)

    def _case(self, figure: str, device: str) -> Case:
        name = f"fig{figure}" if figure[0].isdigit() else figure.replace(" ", "-")

        def work(run: Run, case: Case) -> None:
            sweep(run, self, case)

        rare = self.is_rare(figure, device)
        return Case(name, device, 0, 0, 0, 0, work, data="", metric="", figure=figure, rare=rare, cost=self.cost)

    def is_rare(self, figure: str, device: str) -> bool:
        """Return whether a figure is measured on a device only if its name is given."""
        return device in self.rare.get(figure, ())

    def drawn(self, rows: Sequence[Row]) -> Iterator[Figure]:
        """Return the figures and tables for which rows exist, for each device separately."""
        for figure in self.figures:
            for device in ("cpu", "cuda"):
                own = newest_of(rows, self.name, figure, device)
                if not own:
                    continue
                found = [ready(row) for row in own]
                name = f"select-{self.name}-fig{figure}-{device}"
                if figure in self.tables:
                    heading = f"{self.name}, {figure}: {where(found[0])}"
                    yield Figure(name, heading, own, table=self.tables[figure](found))
                else:
                    heading = f"{self.name}, figure {figure}\n{where(found[0])}"
                    yield Figure(name, heading, own, self.panels(figure, found))


def sweep(run: Run, paper: Paper, case: Case) -> None:
    """Measure the points of a case's figure one after another, and write a row for each."""
    kind = run.device.kind
    # rare figures need larger arrays, which are not made for the other figures
    points = [
        point for point in paper.points(run) if point.k <= point.n and paper.is_rare(point.figure, kind) == case.rare
    ]
    source: _Source = run.keep(("sweep", paper.name, case.rare), lambda: _Source(run, points))
    for point in points:
        if point.figure != case.figure:
            continue
        key = paper.name, *point.key()
        if key not in run.remembered:
            say(f"{point.figure}, {point.series}: {point.rows} x {point.n}, k = {point.k}, {point.data}")
            run.remembered[key] = _measured(run, paper, point, source)
        known = run.remembered[key]
        run.write(case, [known | {"extras": {"series": point.series} | known.get("extras", {})}])


class _Source:
    """Makes the tensors of a sweep: random tensors are views of one array, real ones parts of one matrix."""

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
        if data in selections.POOLED:
            if data not in self.made:
                self.made[data] = selections.Pool(self.values[data], "float32", self.device, data)
            return self.made[data].view(point.rows, point.n)
        if data not in self.made:
            self.made[data] = selections.make(data, *self.largest[data], "float32", self.device)
        return self.made[data][: point.rows, : point.n]


def _measured(run: Run, paper: Paper, point: Point, source: _Source) -> Row:
    options, summary = dict(point.options), paper.summary
    proof = source.proof(point)
    what = columns(proof, point.method, options, data=point.data)
    if not point.counted or summary is None:
        return what | measure(run, proof, point.method, options, least=3, most=5)

    def count() -> Row:
        from tonari.select.request import Counters

        counters = Counters()
        found = call_of(run, proof.tensor, point.k, point.method, options | {"counters": counters}, "last")()
        return {"proof": PROOF, "proved": proof.check(found), "extras": {"counters": summary(counters, point)}}

    counted: Row = tried(run, f"counters of {point.method} {options}", count)
    return what | counted


# --- results -----------------------------------------------------------------------------------------------------


def newest_of(rows: Iterable[Row], suite: str, figure: str, device: str) -> list[Row]:
    """Return the rows of one figure from the newest run, on a kind of device, that measured a point of this figure."""
    found = [row for row in rows if (row["suite"], row["figure"], row["device"]) == (suite, figure, device)]
    measured = [row for row in found if row["seconds_median"] is not None or row["extras"].get("counters")]
    if not measured:
        return []
    # the machine distinguishes runs of the same minute
    last = max(measured, key=lambda row: row["date"])
    return [row for row in found if (row["date"], row["machine"]) == (last["date"], last["machine"])]


def ready(row: Row) -> Row:
    """Return a row with the columns ``series``, ``counters`` and ``options``, which the panels of figures read."""
    options = {name: value for name, value in row["parameters"].items() if name not in ("method", "nan")}
    extras = row["extras"]
    return row | {"series": extras["series"], "counters": extras.get("counters", {}), "options": options}


def curves(rows: Iterable[Row], x: str, y: Callable[[Row], float | None]) -> Curves:
    """Return a curve of points (column `x`, y) for each series; points without a measurement are left out."""
    found: Curves = {}
    for row in rows:
        height = y(row)
        if height is not None:
            found.setdefault(row["series"], []).append((row[x], height))
    return {series: sorted(places) for series, places in found.items()}


def seconds(row: Row) -> float | None:
    """Return the median seconds of a row."""
    value: float | None = row["seconds_median"]
    return value


def improvements(found: Curves, base: str) -> Curves:
    """Return, for each other series, the seconds of ``base`` divided by its own.

    Points at which one of the two was not measured are left out.
    """
    reference = dict(found.get(base, []))
    return {
        series: [(x, reference[x] / y) for x, y in places if x in reference]
        for series, places in found.items()
        if series != base
    }
