"""Translation of kernels without work that Triton repeats; up to Triton 3.6, this work is a fifth of the time.

Triton visits the syntax trees of a kernel and of the functions that it calls. At each node, it silences two warnings
that no node causes. At each call, it reads the signature of the function. For each variant of a function, it parses the
source again. The results do not change while kernels are compiled together, so this module caches them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import os
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any


class _Warnings:
    """The module warnings, without filters within a context."""

    _nothing = contextlib.nullcontext()

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    def catch_warnings(self) -> contextlib.AbstractContextManager[None]:
        return self._nothing

    simplefilter = staticmethod(operator.is_)  # takes two arguments, and does nothing


class _Inspect:
    """The module inspect, which reads the signature of each function once."""

    def __init__(self) -> None:
        self._signature = functools.cache(inspect.signature)
        self._names = functools.cache(_plain_names)

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def signature(self, function: Any) -> inspect.Signature:
        return self._signature(function) if isinstance(function, FunctionType) else inspect.signature(function)

    def getcallargs(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> dict[str, Any]:
        names = self._names(function)
        if named or names is None or len(names) != len(given):
            return inspect.getcallargs(function, *given, **named)
        return dict(zip(names, given, strict=True))


def _plain_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names of a function's parameters; None if one is special, such as *args."""
    parameters = inspect.signature(function).parameters
    plain = all(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters.values())
    return tuple(parameters) if plain else None


@contextlib.contextmanager
def translating() -> Iterator[None]:
    """Return a context in which Triton does not repeat the work that this module caches; its output is the same."""
    from triton.compiler import code_generator
    from triton.runtime.jit import JITCallable

    parse = JITCallable.parse
    # By id, because the hash of a function is that of its source: source, tree, and the function, which keeps its id
    # valid.
    trees: dict[int, tuple[str, Any, Any]] = {}

    def parse_once(function: Any) -> Any:
        if (kept := trees.get(id(function))) is None or kept[0] is not function.src:
            trees[id(function)] = kept = function.src, parse(function), function
        return kept[1]

    with contextlib.ExitStack() as stack:
        for module, name, stand_in in (
            (code_generator, "warnings", _Warnings()),
            (code_generator, "inspect", _Inspect()),
            (JITCallable, "parse", parse_once),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, stand_in)
        yield


@contextlib.contextmanager
def binaries_alone() -> Iterator[None]:
    """Make Triton keep only the binaries of kernels within this context, unless its own setting decides.

    It would otherwise print and store the kernel after each step of compilation, with the interpreter's lock held. That
    takes a tenth of the time of translation.
    """
    from triton import knobs

    settings, name = vars(knobs.compilation), "store_binary_only"
    if name in settings or "TRITON_STORE_BINARY_ONLY" in os.environ:
        yield
        return
    settings[name] = True  # an assignment would also set the variable of the environment
    try:
        yield
    finally:
        settings.pop(name, None)
