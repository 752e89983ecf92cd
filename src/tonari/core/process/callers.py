"""Find the stack level of the code that called the library, so that warnings point there."""

from __future__ import annotations

import inspect


def callers_level() -> int:
    """Return the ``stacklevel`` that makes a warning point at the code that called the library.

    In a compiled model, there are frames of torch between a public function and the code that it runs.
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in ("tonari", "torch"):
        frame, level = frame.f_back, level + 1
    return level
