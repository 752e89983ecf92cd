"""A table as data, and as the lines of a document."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from ..rows import Row
from .cells import Cell, Kind
from .history import History
from .results import PLACE, Missing, Results, Where

WIDTH = 125
HELD = "\0"  # written in place of a space at which a line must not be broken
STALE = "†"
LEGEND = f"{STALE} Measured before the latest changes to the code that it measures."
ALL_STALE = "All figures on this page were measured before the latest changes to the code that they measure."
ALL_FRESH = "All figures on this page were measured with the code as it is."
SLICED = "\\* Extrapolated from a part of the queries."
# Maximum length of a list of case names in a command, in characters. A longer list is replaced by the names' common
# beginning, or left out.
CASES_LENGTH = 60


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, the kind of its cells, and conditions in addition to those of each line."""

    heading: str
    kind: Kind
    where: Where = field(default_factory=dict)
    # whether the cells of the column stay empty if no row meets their conditions
    sparse: bool = False


@dataclass(frozen=True)
class Line:
    """A line of a table: its first cell, conditions of its cells, and kinds of cells that differ from the columns'."""

    label: str
    where: Where = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    # whether all cells of the line may stay empty
    rowless: bool = False


@dataclass(frozen=True)
class Table:
    """The contents of a block of a document.

    Attributes
    ----------
    where : conditions of all cells; conditions of columns override those of lines, and these override those here
    head : heading of the first column
    caption : if not empty, the end of the sentence below the table, which then has no commands below it
    """

    columns: Sequence[Column]
    lines: Sequence[Line]
    where: Where = field(default_factory=dict)
    head: str = ""
    caption: str = ""


@dataclass(frozen=True, eq=False)
class Filled:
    """A table and the cells that were made for it."""

    table: Table
    grid: Sequence[Sequence[Cell]]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows from which the cells are made, without repetition."""
        return list({id(row): row for cells in self.grid for cell in cells for row in cell.rows}.values())

    def text(self, history: History, *, page_is_old: bool = False) -> str:
        """Return the table in Markdown, and below it where, when and how it was measured.

        Cells that are older than their code are marked. If all cells of the page are older (`page_is_old`), a note on
        the page says so instead. A table with a caption has no marks: it is a summary of tables that have them, and
        its dates are in the caption.
        """
        table = self.table
        old = set() if page_is_old or table.caption else {id(row) for row in self.rows if history.old(row)}
        texts = [[_marked(cell, any(id(row) in old for row in cell.rows)) for cell in cells] for cells in self.grid]
        lines = [
            _line([table.head, *(column.heading for column in table.columns)]),
            _line(["---"] * (1 + len(table.columns))),
            *(_line([line.label, *cells]) for line, cells in zip(table.lines, texts, strict=True)),
        ]
        notes = [f"{_briefly(self.rows)}{table.caption}"] if table.caption else measured(self.rows)
        if any("\\*" in cell for cells in texts for cell in cells):
            notes.append(SLICED)
        return "\n".join([*lines, "", wrapped(" ".join(notes))])


def fill(table: Table, results: Results) -> Filled:
    """Make the cells of a table.

    Raises
    ------
    Missing
        A cell that may not stay empty has no row, or all cells of a line have none.
    """
    grid = [[_cell(table, line, column, results) for column in table.columns] for line in table.lines]
    for line, cells in zip(table.lines, grid, strict=True):
        if not line.rowless and not any(cell.rows for cell in cells):
            raise Missing(f"the line {line.label!r} has no rows: {dict(table.where) | dict(line.where)}")
    return Filled(table, grid)


def age(rows: Sequence[Row], history: History) -> str:
    """Return the sentence of a page about the `rows` that are older than the code that they measure."""
    old = sum(history.old(row) for row in rows)
    return ALL_FRESH if not old else ALL_STALE if old == len(rows) else LEGEND


def render(table: Table, results: Results, history: History) -> str:
    """Fill a table and return its text."""
    return fill(table, results).text(history)


def shown(table: Table, results: Results) -> list[Row]:
    """Return the rows from which the cells of a table are made; raises Missing like :func:`fill`."""
    return fill(table, results).rows


def wrapped(words: str) -> str:
    """Return a paragraph as lines of a document; no line ends within a command."""
    held = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", HELD), words)
    return textwrap.fill(held, WIDTH, break_long_words=False, break_on_hyphens=False).replace(HELD, " ")


def _cell(table: Table, line: Line, column: Column, results: Results) -> Cell:
    where = {**table.where, **line.where, **column.where}
    try:
        return line.kinds.get(column.heading, column.kind)(results, where)
    except Missing as error:
        if column.sparse:
            return Cell("")
        raise Missing(f"{line.label!r}, {column.heading!r}: {error}") from error


def _marked(cell: Cell, old: bool) -> str:
    return f"{cell.text} {STALE}" if old else cell.text


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


# --- the text below a table --------------------------------------------------------------------------------------


def measured(rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each machine: repeats, dates, and the commands that repeat the measurement."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[name]) for name in PLACE), []).append(row)
    return [_measured(group) for group in groups.values()]


def _measured(rows: Sequence[Row]) -> str:
    first = rows[0]
    place = first["machine"]
    if first["device"] == "cpu":
        place += f", {first['threads']} threads, {first['isa']}"
    days = sorted({row["date"][:10] for row in rows})
    suites = dict.fromkeys(row["suite"] for row in rows)
    commands = listed([f"`{command([row for row in rows if row['suite'] == suite])}`" for suite in suites])
    return f"{_repeats(rows)} on {place}, {listed(days)}: {commands}."


def _briefly(rows: Sequence[Row]) -> str:
    """Return the beginning of a sentence about repeats, machines and dates, which the caller completes."""
    days = sorted({row["date"][:10] for row in rows})
    machines = listed(list(dict.fromkeys(row["machine"] for row in rows)))
    return f"{_repeats(rows)} on {machines}, {' to '.join(dict.fromkeys((days[0], days[-1])))}"


def _repeats(rows: Sequence[Row]) -> str:
    counts = sorted({row["repeats"] for row in rows if row["repeats"]})
    if not counts:
        return "Counted"
    if counts == [1]:
        return "One round each"
    single = ", or single runs," if counts[0] == 1 else ""  # a single run has no median
    low, high = counts[bool(single)], counts[-1]
    return f"Medians of {low} rounds{single}" if low == high else f"Medians of {low} to {high} rounds{single}"


def command(rows: Sequence[Row]) -> str:
    """Return the command that repeats the measurement of rows of one suite on one machine."""
    first = rows[0]
    words = ["python -m benchmarks run", first["suite"]]
    if first["device"] == "cuda":
        words.append("--device cuda")
    elif first["isa"]:
        words.append(f"--isa {first['isa']}")
    cases = list(dict.fromkeys(row["case"] for row in rows))
    named = [f"--case {case}" for case in cases]
    together = takewhile(lambda words: len(set(words)) == 1, zip(*(case.split("-") for case in cases), strict=False))
    start = "-".join(words[0] for words in together)
    if len(" ".join(named)) > CASES_LENGTH and start:
        named = [f"--case '{start}*'" if start in cases else f"--case '{start}-*'"]
    if len(" ".join(named)) <= CASES_LENGTH:
        words += named
    return " ".join(words)


def listed(words: Sequence[str]) -> str:
    """Return words as an English enumeration, such as "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
