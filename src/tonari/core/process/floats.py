"""Run public functions in the default floating-point environment.

The caller's thread may use another rounding mode, or flush subnormal numbers to zero. Native kernels set their own
environment in every call (native/core/default_floats.hpp); this module protects the arithmetic and comparisons of NumPy
and Python around these calls.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tonari.core._native import DefaultFloats, has_default_floats
from tonari.core.hints import unexpected
from tonari.core.process.compiling import not_compiled

P = ParamSpec("P")
R = TypeVar("R")


def in_default_floats(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function to run in the default floating-point environment; its end restores the thread's environment.

    torch.compile does not trace the wrapped function (:mod:`tonari.core.process.compiling`).

    Threads that the function starts are in the default environment as well, or in that of the system, which is the
    same.

    >>> in_default_floats(round)(2.5)
    2
    """

    @not_compiled
    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if has_default_floats():
                return function(*args, **kwargs)
            with DefaultFloats():
                return function(*args, **kwargs)
        except TypeError as error:
            better = unexpected(error, function.__name__, inspect.signature(function).parameters) if kwargs else None
            if better is None:
                raise
            raise better from None

    return guarded
