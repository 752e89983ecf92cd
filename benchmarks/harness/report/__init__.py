"""The tables of README.md and docs, written from rows: ``python -m benchmarks report``.

In a document, the lines between ``<!-- report: NAME -->`` and ``<!-- end report -->`` are written by the table NAME
(benchmarks/suites/tables) from the rows in benchmarks/results. The block "age", once on each page, says which of its
figures are older than their code. Four rules hold in every table:

- A cell shows the newest run that has everything that the cell needs.
- A ratio is of two rows of one run: with the same case, machine, commit and date. If several runs have both rows, the
  cell gives the smallest and the largest ratio.
- Machine, dates, repeats and the command that repeats the measurement are below the table, all from the rows, which
  also have the commits.
- If the code has changed since a row was measured, its cells are marked, or a note on the page covers all its figures.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from ..machine import ROOT
from ..rows import RESULTS
from .documents import names, written
from .history import Code, History
from .results import Results
from .table import Filled, Table, age, fill

AGE = "age"


def files(root: Path) -> list[Path]:
    """Return the files that may have tables."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def report(tables: Mapping[str, Table], code: Code, *, check: bool, root: Path = ROOT) -> int:
    """Write all tables, or with `check` only compare them; return the exit status, 1 if a compared document differs."""
    history = History(root, code)
    history.require()
    results = Results.read(RESULTS)
    filled = cache(lambda name: fill(tables[name], results))
    differing = 0
    for path in files(root):
        before = path.read_text()
        rows = [row for name in names(before) if name in tables for row in filled(name).rows]
        is_old = bool(rows) and all(map(history.old, rows))
        texts: dict[str, Callable[[], str]] = {AGE: partial(age, rows, history)}
        texts |= {name: partial(_text, filled, name, history, is_old) for name in tables}
        after = written(before, texts, where=str(path.relative_to(root)))
        if after == before:
            continue
        differing += 1
        if check:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), "report", lineterm="", n=0)
            print("\n".join(lines), file=sys.stderr)
        else:
            path.write_text(after)
            print(path)
    if check and differing:
        print(f"{differing} documents differ from their rows; python -m benchmarks report writes them", file=sys.stderr)
    return 1 if check and differing else 0


def _text(filled: Callable[[str], Filled], name: str, history: History, page_is_old: bool) -> str:
    return filled(name).text(history, page_is_old=page_is_old)
