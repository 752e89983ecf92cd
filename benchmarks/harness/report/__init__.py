"""The tables of README.md and docs, written from rows: ``python -m benchmarks report``.

In a document the lines between ``<!-- report: NAME -->`` and ``<!-- end report -->`` are what the table NAME
(benchmarks/suites/tables) makes of the rows in benchmarks/results. Four rules hold in every table:

- A cell shows the newest run that has all that the cell needs.
- A ratio is of two rows of one run: same case, machine, commit and date. Where several runs have both, the ratio is
  given from the smallest to the largest.
- Below the table stand machine, dates, commits, repeats and the command that measures it again, all from the rows.
- Where the code has changed since a row was measured, the table says so.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from pathlib import Path

from ..machine import ROOT
from ..rows import RESULTS
from .documents import written
from .history import Code, History
from .results import Results
from .table import Table, render


def files(root: Path) -> list[Path]:
    """The files that may hold tables."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def report(tables: Mapping[str, Table], code: Code, *, check: bool, root: Path = ROOT) -> int:
    """Write all tables, or with `check` only compare; the exit status: 1 when a compared document differs."""
    history = History(root, code)
    history.require()
    results = Results.read(RESULTS)
    texts = {name: lambda table=table: render(table, results, history) for name, table in tables.items()}
    differing = 0
    for path in files(root):
        before = path.read_text()
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
