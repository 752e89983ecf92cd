"""Measures: functions that compute numbers from benchmark results.

Each reads the rows of one machine: the most recently measured one that has the rows it needs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....harness.report.results import PLACE, Missing, Results, Where, asked, ratio, run_of, value
from ....harness.rows import Row


@dataclass(frozen=True)
class Found:
    """A number, the rows from which it is computed and, in a sweep, the name of its point (`at`)."""

    number: float
    rows: tuple[Row, ...]
    at: str = ""


Measure = Callable[[Results], list[Found]]


def places(results: Results, where: Where) -> Iterator[dict[str, Any]]:
    """Yield the machines that have rows, the most recently measured machine first."""
    dates: dict[tuple[Any, ...], str] = {}
    for row in results.find(where):
        place = tuple(row[name] for name in PLACE)
        dates[place] = max(dates.get(place, ""), row["date"])
    for place in sorted(dates, key=dates.__getitem__, reverse=True):
        yield dict(zip(PLACE, place, strict=True))


def entry(where: Where, name: str) -> Measure:
    """Return a measure that reads `name` from the newest run in which it is not None.

    `name` is a column, or "column.entry".
    """

    def measure(results: Results) -> list[Found]:
        for place in places(results, where):
            for row in reversed(results.runs({**where, **place})):
                found = value(row, name)
                if found is not None:
                    return [Found(found, (row,))]
        raise Missing(f"no row with {name} has {asked(where)}")

    return measure


def seconds(where: Where) -> Measure:
    """Return a measure that reads the median seconds of the newest run."""
    return entry(where, "seconds_median")


def counted(where: Where, name: str) -> Measure:
    """Return a measure that reads the counter `name` from the newest run with counters."""

    def measure(results: Results) -> list[Found]:
        (found,) = entry(where, "extras.counters")(results)
        (row,) = found.rows
        return [Found(row["extras"]["counters"][name], found.rows)]

    return measure


def missing_of(part: Measure) -> Measure:
    """Return a measure of 1 - x, for the x that `part` measures."""

    def measure(results: Results) -> list[Found]:
        return [Found(1 - found.number, found.rows, found.at) for found in part(results)]

    return measure


def portion(where: Where, part: str, *rest: str) -> Measure:
    """Return a measure of part / (part + rest), two entries of the newest run, such as a phase's share of the time."""

    def measure(results: Results) -> list[Found]:
        (found,) = entry(where, part)(results)
        (row,) = found.rows
        return [Found(found.number / (found.number + sum(value(row, name) for name in rest)), found.rows)]

    return measure


def rate(where: Where) -> Measure:
    """Return a measure of the queries per second in the newest run."""

    def measure(results: Results) -> list[Found]:
        return [Found(found.rows[0]["m"] / found.number, found.rows) for found in seconds(where)(results)]

    return measure


def speed_up(ours: Where, theirs: Where) -> Measure:
    """Return a measure of their seconds divided by ours.

    It has a number for each run with both rows, on the machine that was measured last.
    """

    def measure(results: Results) -> list[Found]:
        for place in places(results, ours):
            try:
                pairs = results.pairs({**ours, **place}, {**theirs, **place})
            except Missing:
                continue
            timed = [pair for pair in pairs if all(row["seconds_median"] for row in pair)]
            if timed:
                return [Found(ratio(*pair), pair) for pair in timed]
        raise Missing(f"no run has both {asked(ours)} and {asked(theirs)}")

    return measure


def per_row(few: Where, many: Where) -> Measure:
    """Return a measure of the seconds per row for `few` rows divided by those for `many` rows, both of one run."""

    def measure(results: Results) -> list[Found]:
        found = speed_up(many, few)(results)
        return [Found(one.number * one.rows[0]["m"] / one.rows[1]["m"], one.rows) for one in found]

    return measure


def best_of(*ways: Measure) -> Measure:
    """Return a measure of the largest number that several measures find."""

    def measure(results: Results) -> list[Found]:
        return [max((one for way in ways for one in way(results)), key=lambda one: one.number)]

    return measure


def least_of(*ways: Measure) -> Measure:
    """Return a measure of the smallest number that several measures find."""

    def measure(results: Results) -> list[Found]:
        return [min((one for way in ways for one in way(results)), key=lambda one: one.number)]

    return measure


def deviation(where: Where, name: str, values: Sequence[str]) -> Measure:
    """Return a measure of the standard deviation of the seconds divided by their mean.

    The seconds are those for the `values` of a column, in one run.
    """

    def measure(results: Results) -> list[Found]:
        rows = [found.rows[0] for value in values for found in seconds({**where, name: value})(results)]
        if len({run_of(row) for row in rows}) > 1:
            raise Missing(f"the newest rows of {', '.join(values)} are not of one run")
        times = [row["seconds_median"] for row in rows]
        return [Found(statistics.pstdev(times) / statistics.fmean(times), tuple(rows))]

    return measure


def relative(first: Measure, second: Measure) -> Measure:
    """Return a measure of the first measure's number divided by the second's; both must be of one run."""

    def measure(results: Results) -> list[Found]:
        (*_, one), (*_, other) = first(results), second(results)
        rows = (*one.rows, *other.rows)
        if len({run_of(row) for row in rows}) > 1:
            raise Missing("the newest rows of the two numbers are not of one run")
        return [Found(one.number / other.number, rows)]

    return measure


def fastest(where: Where, recall: float) -> Measure:
    """Return a measure of the least seconds at which the newest run reaches a `recall` at 10."""

    def measure(results: Results) -> list[Found]:
        for place in places(results, where):
            rows = [row for row in results.find({**where, **place}) if row["seconds_median"]]
            reached = [row for row in rows if (row["extras"].get("recall_10") or 0) >= recall]
            if reached:
                newest = max(row["date"] for row in reached)
                row = min((row for row in reached if row["date"] == newest), key=lambda row: row["seconds_median"])
                return [Found(row["seconds_median"], (row,), f"recall@10 {row['extras']['recall_10']:.4f}")]
        raise Missing(f"no row at recall {recall} has {asked(where)}")

    return measure


def over(points: Mapping[str, Measure]) -> Measure:
    """Return a measure of the numbers at all points of a sweep that were measured."""

    def measure(results: Results) -> list[Found]:
        found: list[Found] = []
        for at, one in points.items():
            try:
                found += [Found(each.number, each.rows, at) for each in one(results)]
            except Missing:
                continue
        if not found:
            raise Missing(f"no point of {', '.join(points)} was measured")
        return found

    return measure


def share_best(points: Mapping[str, Mapping[str, Measure]], best: str) -> Measure:
    """Return a measure of the share of points at which the contestant `best` has the largest number."""

    def measure(results: Results) -> list[Found]:
        wins, rows, count = 0, [], 0
        for contestants in points.values():
            try:
                found = {name: one(results)[-1] for name, one in contestants.items()}
            except Missing:
                continue
            count += 1
            wins += max(found, key=lambda name: found[name].number) == best
            rows += [row for one in found.values() for row in one.rows]
        if not count:
            raise Missing(f"no point of {', '.join(points)} was measured")
        return [Found(wins / count, tuple(rows), f"{wins} of {count}")]

    return measure
