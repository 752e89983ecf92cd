"""Delete results that no table, figure or page needs: ``python -m benchmarks prune``.

A row stays if

- a table of a document is made from it,
- a figure shows it,
- an entry of a table in the library is learnt from it,
- a sentence of a document refers to its case, or
- no table and no figure is made from any row of its suite, so that only sentences can refer to it.

Before anything is written, all tables, figures and learnt rows are made again from the remaining rows, and must be the
same. Deleted rows remain in the history of git.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from . import rows
from .case import Suite
from .plots import Figure
from .report.history import History
from .report.results import Missing, Results, Where
from .report.table import Table, render, shown
from .rows import RESULTS, Row

# A function that selects, from all rows of a results file, those from which a table in the library is learnt.
Learner = Callable[[Iterable[Row]], list[Row]]
Files = dict[str, list[Row]]


@dataclass(frozen=True, eq=False)
class _Watched(Results):
    """Results that record all rows that :meth:`find` has returned."""

    found: list[Row] = field(default_factory=list)

    def find(self, where: Where) -> list[Row]:
        """Return all rows that meet the conditions, and record them."""
        answer = super().find(where)
        self.found.extend(answer)
        return answer


class _Made:
    """Makes all tables, figures and learnt entries from rows, and determines which rows they are made from."""

    def __init__(
        self, tables: Mapping[str, Table], history: History, suites: Sequence[Suite], learners: Mapping[str, Learner]
    ) -> None:
        self.tables = tables
        self.history = history
        self.suites = [suite for suite in suites if suite.figures is not None]
        self.learners = learners

    def used(self, files: Files) -> list[Row]:
        """Return the rows from which a table, figure or learnt entry is made."""
        results = _results(files)
        of_tables = [row for table in self.tables.values() for row in of_table(table, results, self.history)]
        return of_tables + [row for figure in self._figures(files) for row in figure.rows] + self._learnt(files)

    def everything(self, files: Files) -> list[object]:
        """Return all tables, figures and learnt entries, for comparison with those made from fewer rows."""
        results = _results(files)
        texts = [render(table, results, self.history) for table in self.tables.values()]
        return [*texts, self._figures(files), self._learnt(files)]

    def _figures(self, files: Files) -> list[Figure]:
        return [one for suite in self.suites if suite.figures for one in suite.figures(files.get(suite.path.stem, []))]

    def _learnt(self, files: Files) -> list[Row]:
        return [row for name, learner in self.learners.items() for row in learner(files.get(name, []))]


def of_table(table: Table, results: Results, history: History) -> list[Row]:
    """Return rows that suffice to make a table.

    These are the rows that its cells show or, if they do not suffice, all rows that it looked up.
    """
    watched = _Watched(results.rows)
    cells = {id(row) for row in shown(table, watched)}
    found = {id(row) for row in watched.found}
    alone = Results([row for row in results.rows if id(row) in cells])
    try:
        same = render(table, alone, history) == render(table, results, history)
    except Missing:  # a cell may need a second row to exist without showing it
        same = False
    return [row for row in results.rows if id(row) in (cells if same else found)]


def prune(
    tables: Mapping[str, Table],
    history: History,
    suites: Sequence[Suite],
    *,
    quoted: Sequence[tuple[str, str]],
    learners: Mapping[str, Learner],
    folder: Path = RESULTS,
) -> None:
    """Delete the rows from which nothing is made from all results files; print the number of bytes saved.

    Parameters
    ----------
    quoted : suites and patterns of cases whose rows stay
    learners : by the name of a results file, the rows that a table in the library is learnt from

    Raises
    ------
    RuntimeError
        Tables or figures would change; then nothing is written.
    """
    made = _Made(tables, history, suites, learners)
    files = {path.stem: rows.read(path) for path in sorted(folder.glob("*.csv"))}
    used = made.used(files)
    ids, known = {id(row) for row in used}, {row["suite"] for row in used}
    kept = {
        name: [id(row) in ids or row["suite"] not in known or _quoted(row, quoted) for row in found]
        for name, found in files.items()
    }
    after = {name: [row for row, stays in zip(files[name], kept[name], strict=True) if stays] for name in files}
    if made.everything(after) != made.everything(files):
        raise RuntimeError("tables or figures change without the rows that none of them shows: nothing is dropped")
    for name, stays in kept.items():
        path = folder / f"{name}.csv"
        before = path.stat().st_size
        rows.keep(path, stays)
        print(f"{name}: {len(stays)} rows of {before:,} bytes, {sum(stays)} of {path.stat().st_size:,} stay")


def _results(files: Files) -> Results:
    return Results.of(row for found in files.values() for row in found)


def _quoted(row: Row, quoted: Sequence[tuple[str, str]]) -> bool:
    return any(row["suite"] == suite and fnmatchcase(row["case"], pattern) for suite, pattern in quoted)
