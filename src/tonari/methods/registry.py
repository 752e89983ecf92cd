"""The registry of methods: one instance per name and device, created on first use.

To add a method, write a subpackage (plan, memory, reference, cpu/, cuda/) with a :class:`tonari.core.method.Method` for
each device, and register these here. Code that works with any method takes it from this registry. Only code that needs
a particular method names it: `auto`, which compares methods; `shards/` and `filters/`, which need brute force; and
`graph/`, which needs NN-Descent.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple, cast

from tonari.bits import plan as bits
from tonari.core.method import Method, SearchMethod
from tonari.core.process.caches import cached
from tonari.exact import plan as exact
from tonari.inputs.overrides import Overrides
from tonari.kdtree import plan as kdtree
from tonari.metrics import get_metric
from tonari.missing import plan as missing
from tonari.nn_descent import plan as nn_descent


class Entry(NamedTuple):
    """A registered method: its module, imported on first use, its class, and the plan fields that callers may set."""

    module: str
    called: str
    overrides: Overrides


_METHODS = {  # modules are imported when they are first used, because those for CUDA import torch
    ("exact", "cpu"): Entry("tonari.exact.cpu.method", "ExactOnCpu", exact.ON_CPU),
    ("exact", "cuda"): Entry("tonari.exact.cuda.method", "ExactOnCuda", exact.ON_CUDA),
    ("kdtree", "cpu"): Entry("tonari.kdtree.cpu.method", "TreeOnCpu", kdtree.OVERRIDES),
    ("kdtree", "cuda"): Entry("tonari.kdtree.cuda.method", "TreeOnCuda", kdtree.OVERRIDES_ON_CUDA),
    ("nn-descent", "cpu"): Entry("tonari.nn_descent.method", "NnDescentOnCpu", nn_descent.OVERRIDES),
    ("nn-descent", "cuda"): Entry("tonari.nn_descent.method", "NnDescentOnCuda", nn_descent.OVERRIDES_ON_CUDA),
    ("bits", "cpu"): Entry("tonari.bits.cpu.method", "BitsOnCpu", bits.OVERRIDES),
    ("bits", "cuda"): Entry("tonari.bits.cuda.method", "BitsOnCuda", bits.OVERRIDES_ON_CUDA),
    ("missing", "cpu"): Entry("tonari.missing.cpu.method", "MissingOnCpu", missing.OVERRIDES),
    ("missing", "cuda"): Entry("tonari.missing.cuda.method", "MissingOnCuda", {}),
}
NAMES = tuple(dict.fromkeys(name for name, _ in _METHODS))
METHODS = ("auto", *NAMES)


@cached()
def method_for(name: str, device: str) -> Method:
    """Return the method with this name on a device, "cpu" or "cuda".

    >>> method_for("kdtree", "cpu").exact
    True
    """
    entry = _METHODS[name, device]
    return cast(Method, getattr(importlib.import_module(entry.module), entry.called)())


def by_force(metric: str) -> str:
    """Return the name of the brute-force method for a metric.

    >>> by_force("euclidean"), by_force("hamming")
    ('exact', 'bits')
    """
    record = get_metric(metric)
    return "bits" if record.bits else "missing" if record.missing else "exact"


def overrides_of(name: str, device: str) -> Overrides:
    """Return the fields that callers may override in the plan of a method, by name.

    >>> sorted(overrides_of("kdtree", "cpu"))
    ['buffer', 'height', 'isa', 'leaf', 'query_block', 'sort', 'traversal']
    """
    return _METHODS[name, device].overrides


def search_method(name: str, device: str) -> SearchMethod:
    """Return the method with this name on a device; raise ValueError if it cannot answer queries."""
    check_search_method(name)
    return cast(SearchMethod, method_for(name, device))


def check_method(name: str) -> None:
    """Raise ValueError for an unknown method."""
    if not isinstance(name, str) or name not in METHODS:
        raise ValueError(f"unknown method {name!r}; expected one of {', '.join(map(repr, METHODS))}")


def check_search_method(name: str) -> None:
    """Raise ValueError for a method that does not answer queries."""
    check_method(name)
    if not is_search(name):
        searching = " or ".join(map(repr, filter(is_search, METHODS)))
        raise ValueError(f"method={name!r} builds graphs: use tonari.knn_graph, or search with {searching}")


def is_search(name: str) -> bool:
    """Return whether a method can answer queries; otherwise it can only build graphs."""
    return name == "auto" or isinstance(method_for(name, "cpu"), SearchMethod)


def is_exact(name: str) -> bool:
    """Return whether a method finds all true neighbours; True for "auto", which is exact unless `recall` is set."""
    return name == "auto" or method_for(name, "cpu").exact


def check_exact(method: str, **given: Any) -> None:
    """Raise ValueError if an argument for approximate graphs, such as `recall`, is set for an exact method."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} is for method='nn-descent', got method={method!r}: change that or leave {name} out"
            )
