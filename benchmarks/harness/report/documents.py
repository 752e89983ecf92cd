"""Blocks in documents: they are found by their first and last lines, and replaced completely."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping

START = re.compile(r"\s*<!--\s*report:\s*(\S+)\s*-->\s*")
END = re.compile(r"\s*<!--\s*end report\s*-->\s*")


def written(document: str, texts: Mapping[str, Callable[[], str]], *, where: str) -> str:
    """Replace the contents of every block by the text for its name.

    Raises
    ------
    ValueError
        A block's name is unknown, a block is not closed, or an end has no start; the message names the line.
    """
    found: list[str] = []
    opened: tuple[str, int] | None = None
    for number, line in enumerate(document.splitlines(), 1):
        start, end = START.fullmatch(line), END.fullmatch(line)
        if opened and start:
            raise ValueError(
                f"{where}, line {number}: a block starts inside of {opened[0]!r} (line {opened[1]}), which has no end"
            )
        if end and not opened:
            raise ValueError(f"{where}, line {number}: the end of a block that has no start")
        if start:
            name = start[1]
            if name not in texts:
                near = difflib.get_close_matches(name, texts, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(texts)}"
                raise ValueError(f"{where}, line {number}: no table is named {name!r}{hint}")
            opened = (name, number)
            found += [line, "", *texts[name]().splitlines(), ""]
        elif end:
            opened = None
        if not opened:
            found.append(line)
    if opened:
        raise ValueError(f"{where}, line {opened[1]}: the block {opened[0]!r} has no end, <!-- end report -->")
    return "\n".join(found) + "\n"


def names(document: str) -> list[str]:
    """Return the names of a document's blocks."""
    return [start[1] for line in document.splitlines() if (start := START.fullmatch(line))]
