"""Keep torch.compile from tracing into public functions.

Dynamo, which traces a model for torch.compile, would follow the calls of public functions into NumPy and native code.
An attribute of a function makes Dynamo end the compiled graph at the call. The function and everything it calls then
run with Dynamo switched off, and the graph continues with the results. This works without importing torch, which may
not be installed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def not_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that it runs uncompiled, also inside a compiled model.

    >>> not_compiled(abs)(-2)
    2
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if "torch._dynamo" not in sys.modules:  # nothing is compiled then
            return function(*args, **kwargs)
        found: R = _run(function, args, kwargs)
        return found

    _mark(called)
    return called


def _mark(function: Any) -> None:
    """Make Dynamo end its graph at calls of a function, by the attribute that torch.compiler.disable sets."""
    function._torchdynamo_disable = True


def _run(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function with Dynamo switched off."""
    quiet = _QUIET.get(function)
    if quiet is None:
        _QUIET[function] = quiet = _switched_off(function)
    return quiet(*args, **kwargs)


def _switched_off(function: Callable[..., Any]) -> Callable[..., Any]:
    import torch
    from torch._dynamo.decorators import skip

    for frame in (not_compiled(function), _run):  # all wrappers have the code of the first
        skip(frame)
    quiet: Callable[..., Any] = torch.compiler.disable(function)
    return quiet


_QUIET: dict[Callable[..., Any], Callable[..., Any]] = {}  # functions with Dynamo switched off
_mark(_run)
_mark(_switched_off)
