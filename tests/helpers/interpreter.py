"""Triton's interpreter made faster: it searches all of triton.language again for every function that a kernel calls.

It searches for built-in functions, which it replaces while a kernel runs. Their names never change, so here they are
looked up once, which halves the time of most kernels' tests.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any


def remember_builtins() -> None:
    """Let the interpreter look up triton.language's built-in functions once, and replace them once a launch."""
    from triton import language
    from triton.language import core
    from triton.runtime import interpreter

    replace_all = interpreter._patch_lang

    @functools.cache
    def names_of(package: Any) -> list[str]:
        return [name for name, member in inspect.getmembers(package) if core.is_builtin(member)]

    @functools.cache
    def languages_of(function: Any) -> list[Any]:
        return [value for value in function.__globals__.values() if value is language or value is core]

    def patch_builtin(package: Any, builder: Any, scope: Any) -> None:
        for name in names_of(package):
            member = getattr(package, name)
            if core.is_builtin(member):
                interpreter._patch_attr(package, name, member, builder, scope)

    def patch_lang(function: Any) -> Any:
        languages = languages_of(function)
        if languages and not any(core.is_builtin(each.arange) for each in languages):
            return interpreter._LangPatchScope()  # the kernel that calls this function has replaced them
        return replace_all(function)

    interpreter._patch_builtin = patch_builtin
    interpreter._patch_lang = patch_lang
