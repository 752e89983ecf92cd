"""Small HTML tables, which notebooks show instead of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(rows: Iterable[Sequence[str]], names: Sequence[str] = ()) -> str:
    """Return an HTML table of the texts in `rows`, which may contain any characters.

    >>> table([("n", "3"), ("k", "1 < 2")])
    '<table><tbody><tr><td>n</td><td>3</td></tr><tr><td>k</td><td>1 &lt; 2</td></tr></tbody></table>'
    """
    head = f"<thead>{_row(names, 'th')}</thead>" if names else ""
    return f"<table>{head}<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
