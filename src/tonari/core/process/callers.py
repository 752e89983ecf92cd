"""The stack level of the code that called the library, for warnings."""

from __future__ import annotations

import inspect


def callers_level() -> int:
    """Return the ``stacklevel`` with which a warning points at the code that called the library.

    In a compiled model, frames of torch are between a public function and the code that it runs.
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in ("tonari", "torch"):
        frame, level = frame.f_back, level + 1
    return level
