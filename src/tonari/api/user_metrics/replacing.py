"""A decorator that replaces a public function if its metric is a function of the caller or "precomputed"."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tonari import inputs
from tonari.api.user_metrics.call import GivenCall
from tonari.core.errors import Unsupported
from tonari.methods.options import Options
from tonari.metrics.names import PRECOMPUTED, is_function

P = ParamSpec("P")
R = TypeVar("R")

_ROWS, _OPTIONS = frozenset(("queries", "points")), frozenset(Options._fields)


def is_given(metric: Any) -> bool:
    """Whether the caller defines the distances: by a function, or by "precomputed" if rows already contain distances.

    >>> is_given("precomputed"), is_given(lambda a, B: abs(B - a).sum(axis=1)), is_given("euclidean")
    (True, True, False)
    """
    return metric.lower() == PRECOMPUTED if type(metric) is str else is_function(metric)


def _copied_bytes(metric: Any, rows: dict[str, Any]) -> int:
    """Return the bytes of the copies of rows that a function of NumPy arrays can read; a matrix is read in place."""
    if isinstance(metric, str):
        return 0
    arrays = {id(x): x for x in rows.values()}.values()
    widened = [x for x in arrays if hasattr(x, "dtype") and inputs.name_of_dtype(x) == "bfloat16"]
    return sum(4 * int(math.prod(x.shape)) for x in widened) + sum(inputs.copied_bytes(x) for x in arrays)


def on_given_values(answer: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wrap a public function so that `answer` is called instead if the metric is a function or "precomputed".

    `answer` takes a :class:`GivenCall` and those of the public function's other arguments that it supports. Any other
    argument with a value other than its default is refused.
    """
    accepted = set(inspect.signature(answer).parameters) - {"call"}

    def wrap(verb: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(verb)
        defaults = {name: parameter.default for name, parameter in signature.parameters.items()}

        @functools.wraps(verb)
        def asking(*args: P.args, **kwargs: P.kwargs) -> R:
            metric = kwargs.get("metric", "euclidean")
            if not is_given(metric):
                if "symmetric" in kwargs and inputs.check_flag(kwargs["symmetric"], "symmetric"):
                    raise ValueError("symmetric: is for functions; all named metrics are symmetric. Leave it out")
                return verb(*args, **kwargs)
            arguments = signature.bind(*args, **kwargs).arguments
            for name, value in arguments.items():
                if name not in accepted | _ROWS | _OPTIONS and value is not defaults[name]:
                    raise Unsupported(
                        f"{name}: is not supported if metric is a function or 'precomputed'; "
                        f"leave {name} out, or name one of tonari.metrics.METRICS"
                    )
            rows = {name: value for name, value in arguments.items() if name in _ROWS}
            inputs.warn_of_dropped(rows, "compute the distances of the pairs that are found in torch")
            options = Options(**{name: value for name, value in arguments.items() if name in _OPTIONS})
            others = {name: value for name, value in arguments.items() if name in accepted}
            memory = inputs.parse_memory(options.memory)
            copied = 0 if memory is None else _copied_bytes(metric, rows)
            with inputs.after_copies(copied, memory) as left:
                found: R = answer(GivenCall.of(options._replace(memory=left), **rows), **others)
            return found

        return asking

    return wrap
