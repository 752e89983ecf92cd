"""Compile the variant of a noted launch, and see whether Triton has it in its cache on disk.

Triton's own code makes the key of the cache, so that a variant that one process compiles is the one that another loads.
"""

from __future__ import annotations

import threading
from typing import Any

from tonari.cuda.rehearsal import Call
from tonari.cuda.stand_ins import as_argument

compiling = threading.RLock()  # held while Triton compiles or loads a kernel: each device launches from its own thread


class _Missing(Exception):
    """Raised where Triton begins to compile."""


def compile_call(call: Call) -> Any:
    """Compile the variant of a call, or load it from Triton's cache on disk; return Triton's record of it."""
    arguments = {name: as_argument(argument) for name, argument in call.arguments.items()}
    with compiling:
        return call.kernel.warmup(grid=(1,), **arguments, **call.constants, **call.options)


def is_compiled(call: Call) -> bool:
    """Whether this process has the variant of a call, or can load it from Triton's cache on disk, which it does."""
    from triton.runtime import driver

    kernel = call.kernel
    with compiling:
        kernel.device_caches[driver.active.get_current_device()]  # sets kernel.ASTSource
        usual = kernel.ASTSource

        class Uncompiled(usual):  # type: ignore[misc, valid-type]
            """What Triton compiles if the cache lacks it: nothing."""

            def make_ir(self, *_: Any, **__: Any) -> Any:
                raise _Missing

        kernel.ASTSource = Uncompiled
        try:
            compile_call(call)
        except _Missing:
            return False
        finally:
            kernel.ASTSource = usual
    return True
