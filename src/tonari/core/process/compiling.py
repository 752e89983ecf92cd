"""Keep torch.compile from tracing into public functions.

torch.compile traces a model by Dynamo, which would follow calls of public functions into NumPy and native code. Public
functions therefore have an attribute that makes Dynamo end the compiled graph at the call. The function and everything
it calls then run with Dynamo switched off, and another compiled graph continues with the results. All this works
without importing torch, which may not be installed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def not_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that it always runs uncompiled, even if a compiled model calls it.

    >>> not_compiled(abs)(-2)
    2
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if "torch._dynamo" not in sys.modules:  # nothing has been compiled
            return function(*args, **kwargs)
        found: R = _run(function, args, kwargs)
        return found

    _mark(called)
    return called


def _mark(function: Any) -> None:
    """Set the attribute that makes Dynamo end its graph at calls of a function, as torch.compiler.disable does."""
    function._torchdynamo_disable = True


def _run(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function with Dynamo switched off for everything that it calls."""
    quiet = _QUIET.get(function)
    if quiet is None:
        _QUIET[function] = quiet = _switched_off(function)
    return quiet(*args, **kwargs)


def _switched_off(function: Callable[..., Any]) -> Callable[..., Any]:
    import torch
    from torch._dynamo.decorators import skip

    for frame in (not_compiled(function), _run):  # Dynamo skips code objects; all wrappers share one
        skip(frame)
    quiet: Callable[..., Any] = torch.compiler.disable(function)
    return quiet


_QUIET: dict[Callable[..., Any], Callable[..., Any]] = {}  # for each function, a version with Dynamo switched off
_mark(_run)
_mark(_switched_off)
