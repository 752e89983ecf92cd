"""Records which variants of kernels are launched."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

import tonari.select.cuda

launching = importlib.import_module("tonari.cuda.launch")
for _found in pkgutil.iter_modules(tonari.select.cuda.__path__, "tonari.select.cuda."):
    importlib.import_module(_found.name)  # modules that a search imports only when it launches their kernels


@contextmanager
def launched() -> Iterator[list[tuple[Any, ...]]]:
    """Record the variant of every kernel launched in the context, by the kernel's name, and launch it nevertheless."""
    usual, seen = launching.launch, list[tuple[Any, ...]]()

    def noting(kernel: Any, programs: int, arguments: Mapping[str, Any], **given: Any) -> None:
        if programs and next(iter(arguments.values())) is not None:
            pick_arguments, pick_constants, plain = launching._pickers_of(kernel)
            special, _ = launching._bound(pick_arguments(arguments), plain)
            options = (given["warps"], given.get("registers"), given.get("stages"), given.get("fused", True))
            seen.append((kernel.fn, pick_constants(given["constants"]), *options, *special))
        usual(kernel, programs, arguments, **given)

    with pytest.MonkeyPatch.context() as patched:
        for name, module in list(sys.modules.items()):
            if name.startswith("tonari.") and getattr(module, "launch", None) is usual:
                patched.setattr(module, "launch", noting)
        yield seen
