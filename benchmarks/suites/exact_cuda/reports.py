"""Reports that exact search logs: the number of rows that were certified at each precision level."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any


class _Reports(logging.Handler):
    """A logging handler that collects the reports of searches."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.found: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.found += [argument for argument in arguments if hasattr(argument, "rows_by_precision")]


@contextlib.contextmanager
def reports() -> Iterator[list[Any]]:
    """Yield a list to which every search inside the block appends its report."""
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
    """Return the rows certified at each precision level, summed over reports, as "int8=900 float64=100".

    Return None without reports.
    """
    if not found:
        return None
    total: dict[str, int] = {}
    for one in found:
        for precision, rows in one.rows_by_precision.items():
            total[precision] = total.get(precision, 0) + rows
    return " ".join(f"{precision}={rows}" for precision, rows in total.items())
