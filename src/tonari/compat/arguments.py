"""Checks and conversions of arguments that the drop-in functions for several libraries share."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.inputs.arrays.kinds import from_host


def leave_out(value: Any, default: Any, name: str, why: str) -> None:
    """Raise Unsupported if an argument that tonari does not support differs from its default.

    >>> from tonari.compat.arguments import leave_out
    >>> leave_out(0.1, 0, "eps", "answers are exact")
    Traceback (most recent call last):
    tonari.core.errors.Unsupported: eps=0.1: is not supported, as answers are exact; leave it out
    """
    plain = type(value) is float or (not isinstance(value, bool) and isinstance(value, Real | str))
    if value is not default and not (plain and value == default):
        raise Unsupported(f"{name}={value!r}: is not supported, as {why}; leave it out")


def number_of(value: Any, name: str, *, least: float = -math.inf) -> float:
    """Check that an argument is a real number of at least `least`, possibly infinite, and return it as a float.

    >>> from tonari.compat.arguments import number_of
    >>> number_of(-1, "r", least=0.0)
    Traceback (most recent call last):
    ValueError: r=-1: expected a number of at least 0
    """
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        raise TypeError(f"{name}={value!r}: expected a number, got {type(value).__name__}")
    number = float(value)
    if math.isnan(number) or number < least:
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise ValueError(f"{name}={value!r}: expected a number{bound}")
    return number


def threads_of(workers: Any, name: str) -> int | None:
    """Translate an argument such as SciPy's `workers` into tonari's `threads`: -1 becomes None, the default.

    >>> from tonari.compat.arguments import threads_of
    >>> threads_of(-1, "workers"), threads_of(3, "workers")
    (None, 3)
    >>> threads_of(0, "workers")
    Traceback (most recent call last):
    ValueError: workers=0: expected -1 for all processors, or a number of threads
    """
    threads = inputs.check_count(workers, name, least=-(2**31))
    if threads == 0 or threads < -1:
        raise ValueError(f"{name}={workers!r}: expected -1 for all processors, or a number of threads")
    return None if threads == -1 else threads


def numbers_of(x: Any, name: str, shape: str) -> npt.NDArray[Any]:
    """Return an array or tensor of real numbers as a NumPy array; error messages give `shape` as the expected shape.

    >>> from tonari.compat.arguments import numbers_of
    >>> numbers_of([1j], "x", "(n,)")
    Traceback (most recent call last):
    TypeError: x: complex128 is not supported, only real numbers
    """
    array = from_host(inputs.to_host(x), name, shape)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: {inputs.dtype_name(array.dtype)} is not supported, only real numbers")
    return array
