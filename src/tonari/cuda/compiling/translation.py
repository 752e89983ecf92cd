"""Translate kernels without the work that Triton repeats, which in Triton 3.6 is two fifths of the time.

Triton visits the syntax trees of a kernel and of the functions that it calls. At each node, it silences two warnings,
which no node ever causes. At each call, it reads the signature of the called function. For each variant of a function,
it parses the source again. For each tensor, it creates a new object for the shape, and a new name for the type,
although there are only a few shapes. None of these results change while kernels are compiled together, so this module
caches them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import os
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any


class _Warnings:
    """A stand-in for the module warnings, whose catch_warnings() does nothing."""

    _nothing = contextlib.nullcontext()

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    def catch_warnings(self) -> contextlib.AbstractContextManager[None]:
        return self._nothing

    simplefilter = staticmethod(operator.is_)  # a function of two arguments without effects


class _Inspect:
    """A stand-in for the module inspect, which reads the signature of each function only once."""

    def __init__(self) -> None:
        self._signature = functools.cache(inspect.signature)
        self._of_method = functools.cache(lambda function: inspect.signature(MethodType(function, self)))
        self._names = functools.cache(_plain_names)

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def signature(self, function: Any) -> inspect.Signature:
        if isinstance(function, MethodType):
            return self._of_method(function.__func__)
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


def _types_that_share_shapes(core: Any) -> Callable[..., None]:
    """Return a constructor for Triton's block types, which checks each shape, and formats its name, only once."""
    usual = core.block_type.__init__
    kept: dict[tuple[Any, ...], tuple[Any, Any, str]] = {}

    def make(self: Any, element_ty: Any, shape: Any) -> None:
        lengths = tuple([each.value if isinstance(each, core.constexpr) else each for each in shape])
        if lengths in kept:
            self.element_ty = element_ty
            self.shape, self.numel, text = kept[lengths]
            self.name = f"<{text}, {element_ty}>"
            return
        usual(self, element_ty, shape)
        text = str(self.shape)
        if vars(self).keys() == {"element_ty", "shape", "numel", "name"} and self.name == f"<{text}, {element_ty}>":
            kept[lengths] = self.shape, self.numel, text

    return make


def _tensors_that_share_shapes(core: Any) -> Callable[..., None]:
    """Return a constructor for Triton's tensors, which creates the object of each shape only once."""
    usual = core.tensor.__init__
    kept: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def make(self: Any, handle: Any, type: Any) -> None:
        lengths = tuple(type.shape.values) if type.is_block() else ()
        if lengths in kept:
            self.handle, self.type, self.dtype = handle, type, type.scalar
            self.shape, self.numel = kept[lengths]
            return
        usual(self, handle, type)
        if vars(self).keys() == {"handle", "type", "dtype", "shape", "numel"}:
            kept[lengths] = self.shape, self.numel

    return make


@contextlib.contextmanager
def translating() -> Iterator[None]:
    """Return a context that caches the work that Triton would repeat while it translates; the output is the same."""
    from triton.compiler import code_generator
    from triton.language import core
    from triton.runtime.jit import JITCallable

    parse = JITCallable.parse
    # Maps a function's id to its source, its tree, and the function itself, which keeps the id valid. The function is
    # not the key, because Triton would compute its hash from its source.
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
            (core.block_type, "__init__", _types_that_share_shapes(core)),
            (core.tensor, "__init__", _tensors_that_share_shapes(core)),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, stand_in)
        yield


@contextlib.contextmanager
def binaries_alone() -> Iterator[None]:
    """Return a context in which Triton stores only the binaries of kernels, unless its own setting is in use.

    Otherwise Triton would format and store the code after each step of compilation, with the interpreter's lock held.
    This takes a tenth of the time of translation.
    """
    from triton import knobs

    settings, name = vars(knobs.compilation), "store_binary_only"
    if name in settings or "TRITON_STORE_BINARY_ONLY" in os.environ:
        yield
        return
    settings[name] = True  # setting the attribute would also set the environment variable
    try:
        yield
    finally:
        settings.pop(name, None)
