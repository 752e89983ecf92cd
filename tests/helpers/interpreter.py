"""Triton's interpreter made faster: it searches all of triton.language again for every function that a kernel calls.

It searches for built-in functions, which it replaces while a kernel runs. Their names never change, so here they are
looked up once, which halves the time of most kernels' tests.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any


def remember_builtins() -> None:
    """Let the interpreter look up the names of triton.language's built-in functions once."""
    from triton.language import core
    from triton.runtime import interpreter

    @functools.cache
    def names_of(package: Any) -> list[str]:
        return [name for name, member in inspect.getmembers(package) if core.is_builtin(member)]

    def patch_builtin(package: Any, builder: Any, scope: Any) -> None:
        for name in names_of(package):
            member = getattr(package, name)
            if core.is_builtin(member):  # not replaced already, by the kernel that calls this function
                interpreter._patch_attr(package, name, member, builder, scope)

    interpreter._patch_builtin = patch_builtin
