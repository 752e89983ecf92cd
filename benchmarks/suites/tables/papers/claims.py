"""Claims of papers, compared with measured rows: the verdict on each claim, and the table of a paper's claims."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....harness.report.cells import Cell, Kind, digits, seconds_text, sliced, text, times_text
from ....harness.report.results import Missing, Results, Where
from ....harness.report.table import Column, Line, Table
from ....harness.rows import Row
from ..machines import EPYC, H100, H200, XEON
from .measures import Found, Measure

SHORT = {EPYC["machine"]: "EPYC", XEON["machine"]: "Xeon", H100["machine"]: "H100", H200["machine"]: "H200"}
PAPER, HERE, MEASURED, VERDICT = "the paper", "here", "measured", "verdict"


# --- verdicts ----------------------------------------------------------------------------------------------------

HOLDS, LESS, IN_PART, FAILS = "holds", "holds, by less", "in part", "does not hold"
OPEN, UNMEASURED = "open", "not measured"  # OPEN: a case exists, but has no row; UNMEASURED: no case exists


def reaches(bound: float, numbers: Sequence[float]) -> str:
    """Judge a speed-up of "up to" `bound` by our largest speed-up: LESS if this is smaller, but above 1."""
    best = max(numbers)
    return HOLDS if best >= bound else LESS if best > 1 else FAILS


def always(bound: float, numbers: Sequence[float]) -> str:
    """Judge a claim of "at least `bound` everywhere"; it holds in part if only some numbers reach the bound."""
    return HOLDS if min(numbers) >= bound else IN_PART if max(numbers) >= bound else FAILS


def at_most(bound: float, numbers: Sequence[float]) -> str:
    """Judge a claim of "at most `bound` everywhere"; it holds in part if only some numbers keep to the bound."""
    return HOLDS if max(numbers) <= bound else IN_PART if min(numbers) <= bound else FAILS


def replaced(bound: float, numbers: Sequence[float]) -> str:
    """Judge whether the method with which tonari replaces the paper's is `bound` times as fast."""
    return {HOLDS: "replaced, faster", IN_PART: "replaced, faster in part", FAILS: "replaced, slower"}[
        always(bound, numbers)
    ]


Rule = Callable[[float, Sequence[float]], str]
Form = Callable[[Sequence[float]], str]


def of_each(form: Callable[[float], str]) -> Form:
    """Return a form that writes several numbers as one text: their range, or one number if they look equal."""

    def words(numbers: Sequence[float]) -> str:
        low, high = form(min(numbers)), form(max(numbers))
        return low if low == high else f"{low} to {high}"

    return words


TIMES: Form = times_text
SECONDS = of_each(seconds_text)
RECALL = of_each(lambda number: f"{number:.3f}")
PERCENT = of_each(lambda number: f"{100 * number:.0f} %")
RATE = of_each(lambda number: f"{digits(number / 1e6)} million/s")


# --- the table ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """One claim: a line of the table.

    Attributes
    ----------
    said : the claim in words, about the paper's method or the method that replaces it
    paper : the paper's number in words, with the section
    how : the command that measures the claim, or the reason why nothing does; shown if no row exists
    ours : the measure of our number; None if nothing measures it
    bound : the paper's number
    rule : function that gives the verdict from the paper's number and ours
    form : function that writes our numbers as text
    """

    said: str
    paper: str
    how: str
    ours: Measure | None = None
    bound: float = 1.0
    rule: Rule = reaches
    form: Form = TIMES

    def here(self, results: Results, where: Where) -> Cell:
        """Return our number as text: for "up to" claims the largest, with the place where it occurs.

        For other claims, the text is the range of our numbers.
        """
        found = found_of(self, results)
        if not found:
            return Cell(f"not measured yet: {self.how}" if self.ours else f"not measured: {self.how}")
        rows = tuple(row for one in found for row in one.rows)
        mark = max((sliced(row) for row in rows), default="")
        if self.rule is reaches:
            found = (max(found, key=lambda one: one.number),)
        words = self.form([one.number for one in found]) + mark
        at = {one.at for one in found}
        return Cell(f"{words} ({at.pop()})" if len(at) == 1 and at != {""} else words, rows)

    def measured(self, results: Results, where: Where) -> Cell:
        """Return the machines and dates of the measured rows as text."""
        rows = [row for one in found_of(self, results) for row in one.rows]
        return Cell("; ".join(sorted({f"{_machine(row)}, {row['date'][:10]}" for row in rows})))

    def verdict(self, results: Results, where: Where) -> Cell:
        """Return the verdict on the claim as text."""
        found = found_of(self, results)
        if not found:
            return Cell(OPEN if self.ours else UNMEASURED)
        return Cell(self.rule(self.bound, [one.number for one in found]))


@functools.lru_cache(maxsize=256)
def found_of(claim: Claim, results: Results) -> Sequence[Found]:
    """Return the numbers that measure a claim; None if no row exists."""
    try:
        return tuple(claim.ours(results)) if claim.ours else ()
    except Missing:
        return ()


def _machine(row: Row) -> str:
    name = SHORT.get(row["machine"], row["machine"])
    return f"{row['gpus']} {name}s" if (row["gpus"] or 1) > 1 else name


def run(words: str) -> str:
    """Return a measuring command as documents show it."""
    return f"`python -m benchmarks run {words}`"


def table(claims: Sequence[Claim]) -> Table:
    """Return the table of a paper's claims."""
    return Table(
        head="claim",
        columns=tuple(Column(name, text("")) for name in (PAPER, HERE, MEASURED, VERDICT)),
        lines=tuple(Line(claim.said, {}, _kinds(claim), rowless=True) for claim in claims),
    )


def _kinds(claim: Claim) -> dict[str, Kind]:
    return {PAPER: text(claim.paper), HERE: claim.here, MEASURED: claim.measured, VERDICT: claim.verdict}
