"""Search unproved rows (not yet certified as exact) without duplicate points that no answer can contain."""

from __future__ import annotations

from typing import Any

from tonari.exact.cuda import tuning
from tonari.exact.cuda.attempts.first import Search
from tonari.exact.cuda.attempts.retries.attempt import Attempt, Unproved
from tonari.exact.cuda.attempts.retries.levels import AtLevel
from tonari.exact.cuda.rows.copies import numbers_of_first_copies, runs_of_copies


class WithoutCopies(Attempt):
    """Search rows that are not yet certified as exact, without duplicate points that no answer can contain.

    The attempt is made only if such duplicates exist (rows/copies.py).
    """

    name = "without copies"
    when = f"if a level leaves {tuning.COPIES_LEFT} rows or more, and some points are copies that no answer can contain"

    def worth(self, left: Unproved) -> Any:
        """Return the row numbers of the first copies of each row; None if the attempt is not worth its time."""
        after_a_level = bool(left.tried) and isinstance(left.tried[-1], AtLevel)
        if not (after_a_level and left.plan.subsets and len(left.known) >= tuning.COPIES_LEFT):
            return None
        return numbers_of_first_copies(left.points, left.plan.k + 1)

    def run(self, left: Unproved, given: Any) -> None:
        rows = left.look()
        with left.expecting_among([(len(rows), len(given))]):
            left.among(given, rows)

    def foresee(self, search: Search, rows: int) -> None:
        if search.plan.subsets and rows >= tuning.COPIES_LEFT:
            runs_of_copies(search.prepared.points)
