"""Python's garbage collector, switched off for a while."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collection_off() -> Iterator[None]:
    """Switch the garbage collector off within this context; if it was off before the context, it stays off."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
