"""The methods of k-selection, which are found by name, and their options.

    name  ->  module tonari.select.cuda.<name>, or tonari.select.papers.<name> for methods that auto never uses on CUDA
          ->  Options, select_on_gpu

Options is a frozen dataclass that checks its values. The module of a method is imported when it is first used.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tonari.core.process.caches import cached

METHODS = ("insertion", "heap", "merge_queue", "hierarchical", "quick", "bitonic", "threshold", "radix")
_PAPERS = ("insertion", "heap", "merge_queue", "quick")

# For each device and method: the options of the method that do not apply on the device.
_HIDDEN = {"cpu": {"quick": {"unit"}}, "cuda": {"threshold": {"batch", "finish"}}}


def check_method(name: Any) -> str:
    """Check that a name is "auto" or the name of a method, and return it; raise ValueError otherwise.

    >>> check_method("heep")
    Traceback (most recent call last):
    ValueError: unknown method 'heep'; expected one of auto, insertion, heap, merge_queue, hierarchical, quick, \
bitonic, threshold, radix. Did you mean 'heap'?
    """
    known = ("auto", *METHODS)
    if isinstance(name, str) and name in known:
        return name
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown method {name!r}; expected one of {', '.join(known)}.{hint}")


@cached()
def method_module(name: str) -> ModuleType:
    """Import the module of a method; this imports neither torch nor Triton."""
    return importlib.import_module(f"tonari.select.{'papers' if name in _PAPERS else 'cuda'}.{name}")


def option_names(name: str, device: str) -> tuple[str, ...]:
    """Return the names of the options that a method has on a device, "cpu" or "cuda".

    >>> option_names("radix", "cpu")
    ('bits',)
    """
    hidden = _HIDDEN[device].get(name, set())
    return tuple(field.name for field in dataclasses.fields(method_module(name).Options) if field.name not in hidden)


def make_options(name: str, given: Mapping[str, Any], device: str) -> Any:
    """Make the options record of a method from keyword arguments, with all values checked.

    Raises
    ------
    TypeError
        The method does not have an option on the device; the message lists its options.
    ValueError
        A value is invalid.

    Examples
    --------
    >>> make_options("radix", {"buffer": "full"}, "cpu")
    Traceback (most recent call last):
    TypeError: method 'radix' has no option buffer on cpu; it has bits
    """
    if given:
        names = option_names(name, device)
        unknown = [option for option in given if option not in names]
        if unknown:
            has = ", ".join(names) if names else "none"
            raise TypeError(f"method {name!r} has no option {', '.join(unknown)} on {device}; it has {has}")
    return method_module(name).Options(**given)
