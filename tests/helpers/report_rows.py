"""Made-up rows of benchmark results and a made-up history of the code, for tests of tables in documents."""

from __future__ import annotations

from typing import Any

from benchmarks.harness.report.history import History
from benchmarks.harness.rows import COLUMNS, Row
from benchmarks.suites.tables import CODE

EMPTY: Row = {name: {} if kind is dict else "" if kind is str else None for name, kind in COLUMNS.items()}
HERE = {"device": "cpu", "machine": "a machine", "isa": "avx2", "threads": 2}


def row(who: str = "tonari", seconds: float | None = 1.0, **columns: Any) -> Row:
    """Make a row of the case "tiny" of exact_cpu."""
    defaults = {"suite": "exact_cpu", "case": "tiny", "date": "2026-01-01T00:00Z", "commit": "abcdef0", "scale": 1.0}
    return EMPTY | HERE | defaults | {"who": who, "seconds_median": seconds, "repeats": 3} | columns


def earlier(**columns: Any) -> Row:
    """Make a row of an earlier run."""
    return row(**{"date": "2025-12-31T00:00Z", "commit": "0fedcba"} | columns)


class Judge(History):
    """A history in which these commits are older than the present code."""

    complete = True

    def __init__(self, *commits: str) -> None:
        self.code = CODE
        self.commits = commits

    def stale(self, commit: str, paths: Any) -> bool:
        return commit in self.commits
