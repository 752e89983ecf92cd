"""What the engine reports of its searches: how many rows each precision level certified."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any


class _Reports(logging.Handler):
    """Keeps the reports that the engine logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.found += [argument for argument in arguments if hasattr(argument, "rows_by_precision")]


@contextlib.contextmanager
def reports() -> Iterator[list[Any]]:
    """What the engine reports of the searches inside the block."""
    logger, handler = logging.getLogger("tonari"), _Reports()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def levels_of(found: Sequence[Any]) -> str | None:
    """Rows certified at each precision level, all reports together; None without a report."""
    if not found:
        return None
    total: dict[str, int] = {}
    for one in found:
        for precision, rows in one.rows_by_precision.items():
            total[precision] = total.get(precision, 0) + rows
    return " ".join(f"{precision}={rows}" for precision, rows in total.items())
