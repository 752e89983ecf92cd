"""The methods: one instance for each name and device, made when it is first asked for.

To add a method, write its room (plan, memory, reference, cpu/, cuda/) with a :class:`tonari.core.method.Method` for
each device, and register them here. Nothing else in tonari knows methods by name, but `auto`, which compares them.
"""

from __future__ import annotations

import functools
import importlib
from typing import NamedTuple, cast

from tonari.core.method import Method, SearchMethod
from tonari.exact import overrides as exact
from tonari.inputs.overrides import Overrides
from tonari.kdtree import plan as kdtree
from tonari.nn_descent import plan as nn_descent


class Entry(NamedTuple):
    """A registered method: its module, imported when it is first asked for, its class, and what can be set in plans."""

    module: str
    called: str
    overrides: Overrides


_METHODS = {  # those for CUDA import torch
    ("exact", "cpu"): Entry("tonari.exact.cpu.method", "ExactOnCpu", exact.ON_CPU),
    ("exact", "cuda"): Entry("tonari.exact.cuda.method", "ExactOnCuda", exact.ON_CUDA),
    ("kdtree", "cpu"): Entry("tonari.kdtree.cpu.method", "TreeOnCpu", kdtree.OVERRIDES),
    ("kdtree", "cuda"): Entry("tonari.kdtree.cuda.method", "TreeOnCuda", kdtree.OVERRIDES_ON_CUDA),
    ("nn-descent", "cpu"): Entry("tonari.nn_descent.method", "NnDescentOnCpu", nn_descent.OVERRIDES),
    ("nn-descent", "cuda"): Entry("tonari.nn_descent.method", "NnDescentOnCuda", nn_descent.OVERRIDES_ON_CUDA),
}
NAMES = tuple(dict.fromkeys(name for name, _ in _METHODS))
METHODS = ("auto", *NAMES)


@functools.cache
def method_for(name: str, device: str) -> Method:
    """The method of a name on a device, "cpu" or "cuda".

    >>> method_for("kdtree", "cpu").exact
    True
    """
    entry = _METHODS[name, device]
    return cast(Method, getattr(importlib.import_module(entry.module), entry.called)())


def overrides_of(name: str, device: str) -> Overrides:
    """What can be set in the plan of a method.

    >>> sorted(overrides_of("kdtree", "cpu"))
    ['height', 'isa', 'leaf', 'query_block', 'sort']
    """
    return _METHODS[name, device].overrides


def search_method(name: str, device: str) -> SearchMethod:
    """The same, where it answers queries; ValueError where it builds graphs alone."""
    check_search_method(name)
    return cast(SearchMethod, method_for(name, device))


def check_method(name: str) -> None:
    """Refuse a method that this version does not have."""
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(f"unknown method {name!r}; expected one of {', '.join(map(repr, METHODS))}")


def check_search_method(name: str) -> None:
    """Refuse a method that does not answer queries."""
    check_method(name)
    if not is_search(name):
        searching = " or ".join(map(repr, filter(is_search, METHODS)))
        raise ValueError(f"method={name!r} builds graphs: use tonari.knn_graph; a search is done by {searching}")


def is_search(name: str) -> bool:
    """Whether a method answers queries, not only graphs."""
    return name == "auto" or isinstance(method_for(name, "cpu"), SearchMethod)


def is_exact(name: str) -> bool:
    """Whether a method can miss no neighbour; "auto" may where a recall is given."""
    return name == "auto" or method_for(name, "cpu").exact
