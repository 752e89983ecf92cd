"""The options that public functions share: their types and default values, declared once.

A public function takes them as ``**shared``, and names the set that it supports:

    @shares(PlaceOptions)
    def verb(points: Any, k: int, *, own: bool = False, **shared: Unpack[PlaceOptions]) -> Neighbors:
        options = Options.of("euclidean", shared)

:func:`shares` refuses other names, and lists each option in the signature and in the docstring. Type checkers know the
options by the annotation.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, NamedTuple, ParamSpec, TypedDict, TypeVar

from tonari.core.process.progress import ProgressLike

P = ParamSpec("P")
R = TypeVar("R")


class Options(NamedTuple):
    """The unchecked arguments that public functions share; :func:`tonari.search` describes them.

    A public function collects its arguments in this record, which all code below it takes. Signatures list the options
    in this order.
    """

    metric: Any = "euclidean"
    method: Any = "auto"
    device: Any = "auto"
    threads: Any = None
    memory: Any = None
    progress: Any = None

    @classmethod
    def of(cls, metric: Any, shared: Mapping[str, Any]) -> Options:
        """Return the record for a metric and the shared options of a call, ignoring weights and matrices."""
        return cls(metric, **{name: value for name, value in shared.items() if name in _RECORDED})


class ProgressOption(TypedDict, total=False):
    """The option that every public function supports."""

    progress: ProgressLike


class ThreadOptions(ProgressOption, total=False):
    """The options of functions whose device is fixed, by an Index or because they run only on the CPU."""

    threads: int | None


class PlaceOptions(ThreadOptions, total=False):
    """The options of functions that run on any device."""

    device: str | Sequence[str]
    memory: int | str | None


class MetricOptions(PlaceOptions, total=False):
    """The options of functions that take any metric, with weights or a matrix."""

    weights: Any
    VI: Any
    covariance: Any
    V: Any
    transform: Any


class SearchOptions(MetricOptions, total=False):
    """The options of functions that choose a method."""

    method: str


class FilterOptions(TypedDict, total=False):
    """Arguments that restrict the points a query may find; `tonari.filters.arguments.Given` records them."""

    where: Any
    exclude: Any
    query_groups: Any
    point_groups: Any
    groups: str | None


class FilteredOptions(FilterOptions, SearchOptions, total=False):
    """The options of functions that search points for queries."""

    exclude_within: int | None


class IndexOptions(FilterOptions, ThreadOptions, total=False):
    """The options of the searches of an Index, which has all other options itself."""


COLUMNS = ("weights", "VI", "covariance", "V", "transform")  # weights or matrix of a metric; None by default
_FILTERS = (*FilterOptions.__annotations__, "exclude_within")
_BEFORE_OWN = frozenset((*COLUMNS, "method", *_FILTERS))  # options that signatures list after `metric`
_RECORDED = frozenset(Options._fields)


def columns_of(shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call that complete its metric: weights and matrices."""
    return {name: value for name, value in shared.items() if name in COLUMNS}


def shares(kind: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a public function that takes the options of `kind`, a class above, as ``**shared``.

    The wrapped function's signature lists the options: after `metric` the ones that complete it and the filters, and
    all others at the end, but before `plan`. Its docstring refers to :func:`tonari.search` for parameters that it does
    not describe.
    """

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        notes = function.__annotations__
        assert notes["shared"] == f"Unpack[{kind.__name__}]"
        signature = _with_options(inspect.signature(function), kind)
        known = signature.parameters.keys()

        @functools.wraps(function)
        def calling(*args: P.args, **kwargs: P.kwargs) -> R:
            if not kwargs.keys() <= known:
                name = next(name for name in kwargs if name not in known)
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}")
            return function(*args, **kwargs)

        calling.__doc__ = _with_entry(function.__doc__, [name for name in ("metric", *_names(kind)) if name in known])
        calling.__annotations__ = {name: kind.__annotations__.get(name, notes.get(name)) for name in (*known, "return")}
        vars(calling)["__signature__"] = signature
        return calling

    return wrap


def _names(kind: type[Any]) -> list[str]:
    """Return the names of the options in a class, in the order in which signatures list them."""
    return [name for name in (*COLUMNS, *Options._fields, *_FILTERS) if name in kind.__annotations__]


def _with_options(signature: inspect.Signature, kind: type[Any]) -> inspect.Signature:
    """Return a signature with ``**shared`` replaced by the options of a class."""
    *own, _ = signature.parameters.values()
    names = [each.name for each in own]
    last = names.index("plan") if "plan" in names else len(own)
    metric = names.index("metric") + 1 if "metric" in names else last
    listed: list[list[Parameter]] = [[], []]
    for name in _names(kind):
        hint = kind.__annotations__[name].__forward_arg__  # the annotation as text, like those of all other parameters
        option = Parameter(name, Parameter.KEYWORD_ONLY, default=Options._field_defaults.get(name), annotation=hint)
        listed[name not in _BEFORE_OWN].append(option)
    parameters = [*own[:metric], *listed[0], *own[metric:last], *listed[1], *own[last:]]
    return signature.replace(parameters=parameters)


def _with_entry(doc: str | None, names: list[str]) -> str | None:
    """Return a docstring with a further entry, after its parameters, for the options that it does not describe.

    >>> print(_with_entry("Search.\\n\\nParameters\\n----------\\nk : int\\n\\nReturns\\n-------\\nint", ["threads"]))
    Search.
    <BLANKLINE>
    Parameters
    ----------
    k : int
    threads
        As for :func:`search`.
    <BLANKLINE>
    Returns
    -------
    int
    """
    lines = inspect.cleandoc(doc or "").split("\n")
    if "Parameters" not in lines:
        return doc
    begin = lines.index("Parameters") + 2
    end = next((i - 1 for i in range(begin, len(lines)) if lines[i].startswith("---")), len(lines) + 1) - 1
    entries = [line.partition(" : ")[0] for line in lines[begin:end] if re.match(r"\w", line)]
    described = {name for entry in entries for name in entry.split(", ")}
    missing = [name for name in names if name not in described]
    if missing:
        lines[end:end] = [", ".join(missing), "    As for :func:`search`."]
    return "\n".join(lines)
