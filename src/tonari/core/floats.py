"""The floating-point environment of the verbs: a caller's may round otherwise, or take subnormal numbers for zero.

Kernels set theirs at every call (native/core/default_floats.hpp); this is for the arithmetic and the comparisons that
NumPy and Python do around them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tonari.core._native import DefaultFloats

P = ParamSpec("P")
R = TypeVar("R")


def in_default_floats(function: Callable[P, R]) -> Callable[P, R]:
    """A function that works in the default floating-point environment, and leaves the thread with the one it had.

    Threads that it starts begin with the default environment, or with that of the system, which is the same.

    >>> in_default_floats(round)(2.5)
    2
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with DefaultFloats():
            return function(*args, **kwargs)

    return guarded
