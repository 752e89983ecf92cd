"""The levels, which retry unproved rows with more groups or a higher precision, and the last attempt.

The last attempt computes the exact values of all points.

A row is proved when a bound certifies that its answer is exact. Each search lists its own levels
(:meth:`tonari.exact.cuda.attempts.first.Search.levels`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import decided
from tonari.exact.cuda.attempts.first import Search
from tonari.exact.cuda.attempts.level import Again, Level
from tonari.exact.cuda.attempts.retries.attempt import Attempt, Unproved


class Ahead(Attempt):
    """Retry a few rows before the device has reported which rows are unproved (not certified as exact).

    A fixed number of rows is searched at the first level, with more groups per row: first the unproved rows, then
    proved rows to fill up the number. If the host waited for the device before it launched the level, the wait would
    take several times as long as the level itself.
    """

    name = "ahead"
    counts = False
    when = "on the first level, before the host knows which rows are left, if the first rows suggest that they are few"

    def worth(self, left: Unproved) -> int | None:
        return left.search.stragglers or None

    def run(self, left: Unproved, given: int) -> None:
        decided("ahead", f"{given} rows are searched again before the host knows which are left")
        search_unknown(left, given)


def search_unknown(left: Unproved, count: int) -> None:
    """Retry `count` rows without waiting for the device: unproved rows and, if these are too few, proved rows."""
    with levels_of(left.search):
        rows = left.proved.argsort(stable=True)[:count]
        left.again(left.search.filled(rows), lambda search: search.levels()[0].begin(), some_proved=True)


class AtLevel(Attempt):
    """Search all rows that are not yet certified as exact with more groups per row, or at a higher precision.

    Parameters
    ----------
    number : int
        The index of the level among ``search.levels()``.
    level : str
        The name of the level in reports.
    """

    when = "unless comparing the rows that are left with all points would take less time"

    def __init__(self, number: int, level: str) -> None:
        self.number, self.level = number, level
        self.name = f"level {number + 1}, {level}"

    def worth(self, left: Unproved) -> Any:
        rows = left.look()
        return None if left.search.are_few(len(rows)) else rows

    def run(self, left: Unproved, given: Any) -> None:
        started = time.perf_counter()
        left.again(given if self.number else left.search.filled(given), self._begin)
        left.known = given[left.proved[given] == 0]  # waits for the device
        left.report.certify(self.level, len(given) - len(left.known), time.perf_counter() - started)
        left.search.levels()[self.number].end()

    def _begin(self, search: Search) -> Again:
        return search.levels()[self.number].begin()


class ByValues(Attempt):
    """Compute the exact values of all points, for rows that no other attempt certified as exact; the last attempt."""

    name = "values"
    waits = False
    when = "for all rows that are still left"

    def worth(self, left: Unproved) -> Any:
        rows = left.look()
        return rows if len(rows) else None

    def run(self, left: Unproved, given: Any) -> None:
        left.again(given, _compare)
        left.report.certify(left.plan.precisions[-1], len(given))


def _compare(search: Search) -> Again:
    def compare(queries: Any, own: Any) -> tuple[Neighbors, int]:
        return search.compare(queries, own), 1

    return compare


@contextlib.contextmanager
def levels_of(search: Search) -> Iterator[list[Level]]:
    """Yield the list of a search's levels; afterwards, drop the packed copies that the levels have made."""
    levels = search.levels()
    try:
        yield levels
    finally:
        for level in levels:
            level.end()
