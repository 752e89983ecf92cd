"""Select rows by conditions: the newest run, all runs, and ratios within a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from ..rows import COMPARED, Row, read

# Conditions on rows: the name of a column (or "parameters.name" or "extras.name") -> the value that it must have. A
# text is a shell pattern; a tuple lists alternative values.
Where = Mapping[str, Any]

PLACE = ("device", "machine", "isa", "threads")
# Rows that agree in these columns were measured side by side: alternately, in one process, for one case.
RUN = ("case", *PLACE, "commit", "date")


class Missing(LookupError):
    """No row meets the conditions."""


class Ambiguous(LookupError):
    """Several rows with different seconds meet conditions that should select one."""


def value(row: Row, name: str) -> Any:
    """Return a column of a row or, with a name like "extras.left", an entry of a column; None if it is missing."""
    column, _, entry = name.partition(".")
    return row[column].get(entry) if entry else row[column]


def meets(row: Row, where: Where) -> bool:
    """Whether a row meets the conditions."""
    return all(_is(value(row, name), wanted) for name, wanted in where.items())


def _is(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return any(_is(found, one) for one in wanted)
    if isinstance(wanted, str) and isinstance(found, str):
        return fnmatchcase(found, wanted)
    return bool(found == wanted)


def run_of(row: Row) -> tuple[Any, ...]:
    """Return the values that identify the run of a row."""
    return tuple(row[name] for name in RUN)


def ratio(ours: Row, theirs: Row) -> float:
    """Return the seconds of `theirs` divided by the seconds of `ours`.

    Raises
    ------
    ValueError
        The two rows are of different runs.
    """
    if run_of(ours) != run_of(theirs):
        differing = [name for name in RUN if ours[name] != theirs[name]]
        raise ValueError(
            f"{theirs['who']!r} and {ours['who']!r} on {ours['case']!r} are not of one run: they differ in "
            + ", ".join(f"{name} ({theirs[name]!r} and {ours[name]!r})" for name in differing)
        )
    return float(theirs["seconds_median"] / ours["seconds_median"])


@dataclass(frozen=True, eq=False)
class Results:
    """All rows of full size with a measurement, in the order of their files."""

    rows: Sequence[Row]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read the rows of all results files."""
        return cls.of(row for path in sorted(folder.glob("*.csv")) for row in read(path))

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Results:
        """Return the rows from which tables are made.

        Left out are rows that only give the reason why something was not measured, rows of reduced size, and rows of
        comparisons of two commits.
        """
        whole = (row for row in rows if row["scale"] == 1 and row["stage"] != COMPARED)
        return cls([row for row in whole if row["seconds_median"] is not None or row["extras"]])

    def find(self, where: Where) -> list[Row]:
        """Return all rows that meet the conditions."""
        among = self._of_case.get(where.get("case"), self.rows)
        return [row for row in among if meets(row, where)]

    @cached_property
    def _of_case(self) -> dict[Any, list[Row]]:
        """The rows of each case, by its name, so that the documents' thousands of look-ups are fast."""
        found: dict[Any, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row["case"], []).append(row)
        return found

    def runs(self, where: Where) -> list[Row]:
        """Return one row for every run with rows that meet the conditions, oldest run first.

        Raises
        ------
        Missing
            No row meets the conditions.
        Ambiguous
            The rows are of several machines, or a run has several rows with different seconds: add conditions.
        """
        runs: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.find(where):
            runs.setdefault(run_of(row), []).append(row)
        if not runs:
            raise Missing(f"no row has {asked(where)}")
        places = sorted({" ".join(str(row[name]) for name in PLACE if row[name]) for row, *_ in runs.values()})
        if len(places) > 1:
            raise Ambiguous(f"rows of several machines have {asked(where)}: {'; '.join(places)}")
        ordered = sorted(runs.items(), key=lambda item: (item[0][RUN.index("date")], item[0]))
        return [_only(rows, where) for _, rows in ordered]

    def pairs(self, ours: Where, theirs: Where) -> list[tuple[Row, Row]]:
        """Return pairs (ours, theirs), oldest run first, for every run with rows that meet both conditions.

        Raises
        ------
        Missing
            No run has both.
        """
        of_run = {run_of(row): row for row in self.runs(theirs)}
        found = [(row, of_run[run_of(row)]) for row in self.runs(ours) if run_of(row) in of_run]
        if not found:
            raise Missing(f"no run has both {asked(ours)} and {asked(theirs)}")
        return found


def _only(rows: Sequence[Row], where: Where) -> Row:
    """Return the most complete row of one measurement: a contestant with several bars has a row for each bar."""
    if len({str(row["seconds_median"] or row["extras"]) for row in rows}) > 1:
        told = sorted(
            {" ".join(str(row[name]) for name in ("who", "stage", "m", "n", "k", "parameters")) for row in rows}
        )
        raise Ambiguous(f"{len(rows)} rows of one run have {asked(where)}: {'; '.join(told)}")
    return max(rows, key=lambda row: (row["recall"] is not None, row["repeats"] or 0))


def asked(where: Where) -> str:
    """Return the conditions in words."""
    return ", ".join(f"{name}={wanted!r}" for name, wanted in where.items())
