"""Who called the library: where its warnings point."""

from __future__ import annotations

import inspect


def callers_level() -> int:
    """How far up the stack, counted from who asks, the caller of the library is: where a warning should point."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] == "tonari":
        frame, level = frame.f_back, level + 1
    return level
