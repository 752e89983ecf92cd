"""Pruning keeps the rows that tables, figures and pages need, removes all others, and changes no document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import pruning
from benchmarks.harness.case import Suite
from benchmarks.harness.plots import Figure
from benchmarks.harness.report import cells
from benchmarks.harness.report.results import Results
from benchmarks.harness.report.table import Column, Line, Table, render
from benchmarks.harness.rows import Row, append, keep, newest, read
from tests.helpers.report_rows import Judge, earlier, row

HISTORY = Judge()
TABLE = Table(
    columns=(Column("tonari", cells.seconds()), Column("peer", cells.against(who="faiss"))),
    lines=(Line("tiny", {"case": "tiny"}),),
    where={"who": "tonari", "suite": "exact_cpu"},
)
SUITE = Suite("exact_cpu", "exact_cpu", (), ())


def drawn(rows: Sequence[Row]) -> Iterator[Figure]:
    found = newest([one for one in rows if one["case"] == "curve"], "case")
    yield Figure("curve", "title", found)


def learnt(rows: Iterable[Row]) -> list[Row]:
    return [one for one in rows if one["case"] == "grid" and one["passed"]]


def pruned(folder: Path, rows: Sequence[Row], quoted: Sequence[tuple[str, str]] = (), **changes: Any) -> list[Row]:
    path = folder / "exact_cpu.csv"
    append(path, rows)
    made = {"tables": {"one": TABLE}, "suites": [replace(SUITE, figures=drawn)], "learners": {"exact_cpu": learnt}}
    pruning.prune(**(made | changes), history=HISTORY, quoted=quoted, folder=folder)
    return read(path)


def test_rows_that_nothing_is_made_from_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [row(), row(who="faiss", seconds=3.0), earlier(), earlier(who="faiss", seconds=2.0)]
    curve = [row(case="curve", k=10), row(case="curve", k=20)]
    best = [row(case="grid", passed=True)]
    gone = [
        earlier(case="curve", k=10),
        row(case="grid", passed=False),
        row(case="another"),
        row(who="torch"),
        row(scale=0.02),
        row(seconds=None, note="not reached"),
    ]
    before = [one for pair in zip(gone, [*shown, *curve], strict=True) for one in pair] + best
    expected = [one for one in before if one not in gone]
    assert pruned(tmp_path, before) == expected
    assert capsys.readouterr().out.startswith("exact_cpu: 13 rows of ")
    assert render(TABLE, Results.of(expected), HISTORY) == render(TABLE, Results.of(before), HISTORY)


def test_rows_that_only_words_refer_to_stay(tmp_path: Path) -> None:
    used = [row(), row(who="faiss", seconds=3.0)]
    named = row(case="attempts-1")
    of_a_suite_without_tables = earlier(suite="radius", case="anything")
    found = pruned(
        tmp_path, [*used, named, row(case="other"), of_a_suite_without_tables], [("exact_cpu", "attempts-*")]
    )
    assert found == [*used, named, of_a_suite_without_tables]


def test_a_row_that_a_cell_only_asks_for_stays(tmp_path: Path) -> None:
    beside = Table(
        columns=(Column("recall", cells.number("recall", ".2f", beside={"who": "faiss"})),),
        lines=(Line("tiny", {"case": "tiny"}),),
        where={"who": "tonari"},
    )
    rows = [row(recall=0.5), row(who="faiss"), earlier(recall=0.4), row(who="torch")]
    assert pruned(tmp_path, rows, tables={"one": beside}) == rows[:3]


def test_nothing_is_written_where_a_figure_would_change(tmp_path: Path) -> None:
    def careless(rows: Sequence[Row]) -> Iterator[Figure]:
        yield Figure("curve", f"{len(rows)} rows", list(rows[:1]))

    rows = [row(), row(who="faiss", seconds=3.0), row(case="other")]
    with pytest.raises(RuntimeError, match="nothing is dropped"):
        pruned(tmp_path, rows, suites=[replace(SUITE, figures=careless)])
    assert read(tmp_path / "exact_cpu.csv") == rows


def test_lines_that_stay_are_not_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    append(path, [row(note='a "quoted", word'), row(case="b")])
    first = "".join(path.read_text().splitlines(keepends=True)[:4])
    keep(path, [True, False])
    assert path.read_text() == first
    with pytest.raises(ValueError, match="zip"):
        keep(path, [True, False])
    assert path.read_text() == first
