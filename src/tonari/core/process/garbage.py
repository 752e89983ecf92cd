"""Switch Python's garbage collector off for a while."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collection_off() -> Iterator[None]:
    """Return a context in which the garbage collector is off; if it was off before, it stays off afterwards."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
