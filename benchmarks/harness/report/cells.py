"""The kinds of cells in tables. Each function here returns a kind: a function that makes a cell from the results.

A kind is called with the conditions of its table, line and column, and returns text and the rows from which it is made.
"""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..rows import Row, newest
from .results import Missing, Results, Where, asked, ratio, value


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and the rows from which the text is made."""

    text: str
    rows: tuple[Row, ...] = ()


Kind = Callable[[Results, Where], Cell]


# --- numbers -----------------------------------------------------------------------------------------------------


def digits(number: float, count: int = 3) -> str:
    """Return a number with this many significant digits, without an exponent."""
    text = f"{number:#.{count}g}"
    if "e" in text:
        return f"{float(text):,.0f}"
    whole = text.rstrip(".")
    return f"{float(whole):,.0f}" if "." not in whole else whole


def seconds_text(seconds: float) -> str:
    """Return seconds with three digits, as µs, ms or s."""
    for bound, factor, unit in ((1e-4, 1e6, "µs"), (0.0999, 1e3, "ms")):
        if seconds < bound:
            return f"{digits(seconds * factor)} {unit}"
    return f"{digits(seconds)} s"


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f} %"


def times_text(ratios: Sequence[float]) -> str:
    """Return ratios as text: ``4.1×``, or the smallest and the largest; small ratios have two decimals."""
    low, high = (f"{one:.2f}" if max(ratios) < 2 else digits(one, 2) for one in (min(ratios), max(ratios)))
    return f"{low}×" if low == high else f"{low} to {high}×"


def sliced(row: Row) -> str:
    """Return the mark for seconds that were scaled because only some of the queries were timed; otherwise ""."""
    return r"\*" if row["rows_timed"] else ""


def shown(row: Row) -> str:
    """Return the seconds of a row as text, with a mark if only some of the queries were timed."""
    if row["seconds_median"] is None:
        raise Missing(f"the row of {row['who']!r} on {row['case']!r} has no seconds: {row['note'] or 'no note'}")
    return seconds_text(row["seconds_median"]) + sliced(row)


def spread_text(rows: Sequence[Row]) -> str:
    """Return the seconds of the last run and, if there are several runs, those of the fastest and the slowest."""
    low, high = (seconds_text(function(row["seconds_median"] for row in rows)) for function in (min, max))
    if low == high:
        return shown(rows[-1])
    number, _, unit = low.partition(" ")
    return f"{shown(rows[-1])} ({number if high.endswith(f' {unit}') else low} to {high})"


# --- kinds of cells ----------------------------------------------------------------------------------------------


def text(words: str) -> Kind:
    """Show the text `words`."""
    return lambda results, where: Cell(words)


def seconds(beside: Where | None = None, *, bold: bool = False) -> Kind:
    """Show the seconds of the newest run.

    With `beside`, it is the newest run that also has a row with these conditions.
    """

    def cell(results: Results, where: Where) -> Cell:
        row = results.pairs(where, {**where, **beside})[-1][0] if beside else results.runs(where)[-1]
        return Cell(f"**{shown(row)}**" if bold else shown(row), (row,))

    return cell


def seconds_of_runs(*, bold: bool = False) -> Kind:
    """Show seconds of the newest run, and the fastest and slowest of all runs."""

    def cell(results: Results, where: Where) -> Cell:
        rows = results.runs(where)
        words = spread_text(rows)
        return Cell(f"**{words}**" if bold else words, tuple(rows))

    return cell


def against(**theirs: Any) -> Kind:
    """Show a peer's seconds in the newest run that also has tonari.

    In brackets it shows the ratios of the peer's seconds to ours in all such runs.
    """

    def cell(results: Results, where: Where) -> Cell:
        pairs = results.pairs(where, {**where, **theirs})
        ratios = [ratio(ours, peer) for ours, peer in pairs]
        words = f"{shown(pairs[-1][1])} ({times_text(ratios)})"
        return Cell(words, tuple(row for pair in pairs for row in pair))

    return cell


def against_newest(**theirs: Any) -> Kind:
    """Show a peer's seconds and, in brackets, their ratio to ours, both from the newest run that has both."""

    def cell(results: Results, where: Where) -> Cell:
        pair = results.pairs(where, {**where, **theirs})[-1]
        return Cell(f"{shown(pair[1])} ({times_text([ratio(*pair)])})", pair)

    return cell


def against_of_runs(**theirs: Any) -> Kind:
    """Show a peer's seconds in the newest run that also has tonari, and their range over all such runs."""

    def cell(results: Results, where: Where) -> Cell:
        pairs = results.pairs(where, {**where, **theirs})
        return Cell(spread_text([peer for _, peer in pairs]), tuple(row for pair in pairs for row in pair))

    return cell


def times(**theirs: Any) -> Kind:
    """Show the ratio of a peer's seconds to ours; if several runs have both, the range of the ratios."""

    def cell(results: Results, where: Where) -> Cell:
        pairs = results.pairs(where, {**where, **theirs})
        words = times_text([ratio(ours, peer) for ours, peer in pairs])
        return Cell(words, tuple(row for pair in pairs for row in pair))

    return cell


def recall_alone(form: str = ".4f") -> Kind:
    """Show the measured recall."""
    return number("recall", form)


def version(library: str) -> Kind:
    """Show a library with the version that was measured."""

    def cell(results: Results, where: Where) -> Cell:
        row = results.runs(where)[-1]
        versions = dict(pair.split("=") for pair in row["versions"].split())
        return Cell(f"{library} {versions[library]}", (row,))

    return cell


def over(ours: Where) -> Kind:
    """Show a contestant's seconds divided by those of `ours`, in the newest run with both; parameters may differ."""

    def cell(results: Results, where: Where) -> Cell:
        shared = {name: wanted for name, wanted in where.items() if not name.startswith("parameters")}
        pair = results.pairs({**shared, **ours}, where)[-1]
        return Cell(times_text([ratio(*pair)]), pair)

    return cell


def share(**theirs: Any) -> Kind:
    """Show our seconds divided by another contestant's; if several runs have both, the range of the quotients."""

    def cell(results: Results, where: Where) -> Cell:
        pairs = results.pairs(where, {**where, **theirs})
        shares = [1 / ratio(ours, other) for ours, other in pairs]
        low, high = f"{min(shares):.2f}", f"{max(shares):.2f}"
        words = low if low == high else f"{low} to {high}"
        return Cell(words, tuple(row for pair in pairs for row in pair))

    return cell


def share_of(name: str, whole: str) -> Kind:
    """Show the value `name` of the newest run as a percentage of its value `whole`."""

    def cell(results: Results, where: Where) -> Cell:
        row = results.runs(where)[-1]
        return Cell(percent(value(row, name) / value(row, whole)), (row,))

    return cell


def number(name: str, form: str | Callable[[Any], str], *, beside: Where | None = None) -> Kind:
    """Show a column of the newest run, or an entry of its parameters or extras."""

    def cell(results: Results, where: Where) -> Cell:
        row = results.pairs(where, {**where, **beside})[-1][0] if beside else results.runs(where)[-1]
        found = value(row, name)
        if found is None:
            raise ValueError(f"the row of {row['who']!r} on {row['case']!r} at {row['commit']} has no {name}")
        return Cell(form(found) if callable(form) else format(found, form), (row,))

    return cell


def number_of_runs(name: str, form: Callable[[Any], str]) -> Kind:
    """Show the smallest and the largest value, over all runs, of a column or of an entry of parameters or extras."""

    def cell(results: Results, where: Where) -> Cell:
        rows = tuple(results.runs(where))
        low, high = (form(function(value(row, name) for row in rows)) for function in (min, max))
        return Cell(low if low == high else f"{low} to {high}", rows)

    return cell


def recall(form: str = ".4f", *, at: str = "") -> Kind:
    """Show the measured recall with its 95 % interval; with ``at="_10"``, the recall at 10 in the extras."""

    def cell(results: Results, where: Where) -> Cell:
        row = results.runs(where)[-1]
        prefix = "extras." if at else ""
        found = [value(row, f"{prefix}recall{at}{end}") for end in ("", "_low", "_high")]
        if found[0] is None:
            raise ValueError(f"the row of {row['who']!r} on {row['case']!r} at {row['commit']} has no recall{at}")
        low, high = found[1:]
        interval = "" if low is None or high is None else f" ({low:{form}} to {high:{form}})"
        return Cell(f"{found[0]:{form}}{interval}", (row,))

    return cell


def at_recall() -> Kind:
    """Show the seconds of the newest run, and its recall at 10."""

    def cell(results: Results, where: Where) -> Cell:
        row = results.runs(where)[-1]
        return Cell(f"{shown(row)} at {row['extras']['recall_10']:.4f}", (row,))

    return cell


def per_second(form: Callable[[float], str] = lambda found: f"{digits(found / 1e6)} million") -> Kind:
    """Show the queries per second of the newest run."""

    def cell(results: Results, where: Where) -> Cell:
        row = results.runs(where)[-1]
        return Cell(form(row["m"] / row["seconds_median"]), (row,))

    return cell


def bars_kept() -> Kind:
    """Show how many of the judged rows meet their bar, such as "5 of 6"."""

    def cell(results: Results, where: Where) -> Cell:
        rows = _judged(results, where)
        return Cell(f"{sum(row['passed'] for row in rows)} of {len(rows)}", rows)

    return cell


def largest_value(form: str = ".2f") -> Kind:
    """Show the largest value that was compared with a bar."""

    def cell(results: Results, where: Where) -> Cell:
        rows = _judged(results, where)
        return Cell(format(max(row["value"] for row in rows), form), rows)

    return cell


def share_within(bound: float) -> Kind:
    """Show how many shapes of a grid of shapes have a value of at most `bound` in their newest row."""

    def cell(results: Results, where: Where) -> Cell:
        rows = _of_grid(results, where)
        kept = sum(row["value"] <= bound for row in rows)
        return Cell(f"{kept} of {len(rows)} ({percent(kept / len(rows))})", rows)

    return cell


def cells_beyond(bound: float) -> Kind:
    """Show the shapes of a grid whose newest value is above `bound`, the largest value first."""

    def cell(results: Results, where: Where) -> Cell:
        rows = _of_grid(results, where)
        beyond = sorted((row for row in rows if row["value"] > bound), key=lambda row: -row["value"])
        told = (f"{row['data']} d = {row['d']}, {row['n']:,} × {row['m']:,}: {row['value']:.2f}" for row in beyond)
        return Cell("; ".join(told) or "none", rows)

    return cell


def _of_grid(results: Results, where: Where) -> tuple[Row, ...]:
    return tuple(newest(_judged(results, where), "case", "n", "m", "d", "k", "device", "machine", "isa", "threads"))


def _judged(results: Results, where: Where) -> tuple[Row, ...]:
    rows = tuple(row for row in results.find(where) if row["passed"] is not None)
    if not rows:
        raise Missing(f"no row with a bar has {asked(where)}")
    return rows


def joined(*kinds: Kind, by: str = " / ") -> Kind:
    """Show the texts of several kinds of cells, joined in one cell."""

    def cell(results: Results, where: Where) -> Cell:
        cells = [kind(results, where) for kind in kinds]
        return Cell(by.join(one.text for one in cells), tuple(row for one in cells for row in one.rows))

    return cell


def asking(kind: Kind, **where: Any) -> Kind:
    """Return `kind` with conditions that are added to those of its table, line and column, or replace them."""
    return lambda results, asked: kind(results, {**asked, **where})
