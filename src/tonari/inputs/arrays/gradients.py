"""Warnings for torch tensors that require gradients, if the results of a function do not carry gradients."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tonari.core.process.callers import callers_level

P = ParamSpec("P")
R = TypeVar("R")


def requires_gradients(given: Any) -> bool:
    """Return whether an argument is a torch tensor that requires gradients, or a list with such a tensor.

    Return False while torch does not record gradients, as under ``torch.no_grad()``.

    >>> requires_gradients([1.0, 2.0])
    False
    """
    torch: Any = sys.modules.get("torch")  # if torch is not imported, nothing requires gradients
    if torch is None or type(given) is np.ndarray or not torch.is_grad_enabled():
        return False
    some = given if isinstance(given, list | tuple) else (given,)
    return any(isinstance(one, torch.Tensor) and one.requires_grad for one in some)


def warn_of_dropped(rows: dict[str, Any], cure: str, *, dropped: str = "but the distances returned carry none") -> None:
    """Warn if one of the caller's arrays requires gradients that the result does not carry.

    Parameters
    ----------
    rows : dict of str to rows
        The caller's arrays, by their names in messages.
    cure : str
        The advice in the message on how to get gradients.
    dropped : str
        The part of the message that names the dropped gradients.
    """
    for name, given in rows.items():
        if requires_gradients(given):
            warnings.warn(
                f"{name}: requires gradients, {dropped}; {cure}, or pass {name}.detach()", stacklevel=callers_level()
            )
            return


def without_gradients(cure: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function whose results carry no gradients; it warns if an argument requires them.

    Parameters
    ----------
    cure : str
        The advice in the message on how to get gradients.
    """

    def wrap(verb: Callable[P, R]) -> Callable[P, R]:
        parameters = list(inspect.signature(verb).parameters)

        @functools.wraps(verb)
        def dropping(*args: P.args, **kwargs: P.kwargs) -> R:
            if "torch" in sys.modules and any(map(requires_gradients, (*args, *kwargs.values()))):
                named = dict(zip(parameters, args, strict=False)) | kwargs
                warn_of_dropped(named, cure, dropped=f"but none flow through {verb.__name__}")
                # Detach the arguments, so that calls inside the function do not warn again.
                detached: Any = tuple(map(_detached, args)), {name: _detached(value) for name, value in kwargs.items()}
                return verb(*detached[0], **detached[1])
            return verb(*args, **kwargs)

        return dropping

    return wrap


def _detached(given: Any) -> Any:
    if not requires_gradients(given):
        return given
    return [_detached(one) for one in given] if isinstance(given, list | tuple) else given.detach()
