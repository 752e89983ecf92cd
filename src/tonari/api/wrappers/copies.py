"""Copies that a call makes of its rows: their bytes are part of `memory`, and are refused before anything is copied.

Rows are copied if tonari cannot read them in place (``inputs.copied_bytes``), or if the metric compares
transformed rows (``Change.copied_bytes``). A search has the memory that the copies leave.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tonari import inputs
from tonari.api.user_metrics.call import is_given
from tonari.core.errors import BudgetExceeded
from tonari.methods.options import columns_of
from tonari.methods.registry import by_force, search_method
from tonari.metrics import get_metric
from tonari.metrics.problem import make_problem
from tonari.metrics.transforms.change import Change, change_for

P = ParamSpec("P")
R = TypeVar("R")

_ROWS = ("queries", "points", "points_a", "points_b")


def counting_copies(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that copies of its rows count towards `memory`.

    The function receives the rows unchanged, and the memory that their copies will leave.
    """
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def counting(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.get("memory") is None:
            return verb(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        metric = given.get("metric", "euclidean")
        if is_given(metric) or not isinstance(metric, str):
            return verb(*args, **kwargs)
        memory = inputs.parse_memory(given["memory"])
        change = change_for(metric, **columns_of(given))
        arrays = {name: given[name] for name in _ROWS if given.get(name) is not None}
        copied = bytes_of_copies(arrays, metric, change, given.get("device", "auto"))
        base = metric if change is None else change.base

        def least() -> int:
            return least_memory(list(arrays.values()), base, given.get("k"), change)

        with inputs.after_copies(copied, memory, least=least) as left:
            return verb(*args, **kwargs | {"memory": left})  # type: ignore[arg-type]

    return counting


def bytes_of_copies(arrays: dict[str, Any], metric: str, change: Change | None, device: Any = "auto") -> int:
    """Return the bytes of the copies of some arrays in the memory that a budget limits.

    On CUDA, a budget limits the memory of a device; copies in host memory are not part of it.

    Parameters
    ----------
    arrays : dict
        The caller's arrays, by name. An array that occurs twice is copied once.
    metric : str
    change : Change, optional
        The transformation of the rows.
    device : str or list of str
        The argument of the call.
    """
    bits, copied = get_metric(metric).bits, 0
    on_cpu = inputs.parse_device(device) in ("auto", "cpu")
    for name, x in {id(x): (name, x) for name, x in arrays.items()}.values():
        if hasattr(x, "tocsr") or (inputs.place_of(x, name) is None and not on_cpu):
            continue
        copied += inputs.copied_bytes(x, bits=bits)
        if change is not None and len(shape := _shape(x)) == 2:
            copied += change.copied_bytes(shape, inputs.name_of_dtype(x) if hasattr(x, "dtype") else "")
    return copied


def _shape(x: Any) -> Any:
    """Return the shape of an array, a table or a list of rows."""
    if hasattr(x, "shape"):
        return tuple(x.shape)
    return (len(x), len(x[0])) if len(x) and hasattr(x[0], "__len__") else (len(x),)


def least_memory(arrays: list[Any], metric: str, k: Any, change: Change | None) -> int:
    """Return the memory that a search among arrays of these shapes needs at least on the CPU; 0 if it is not known."""
    shapes = [_shape(x) for x in arrays]
    if any(len(shape) != 2 or 0 in shape for shape in shapes) or inputs.place_of(arrays[0], "rows") is not None:
        return 0
    (m, d), (n, _) = shapes[0], shapes[-1]
    k = min(k, n - 1) if isinstance(k, int) and k > 0 else 1
    dtype = "float32"
    if get_metric(metric).bits:
        d, dtype = -(-d // 8), "uint8"
    elif change is not None:
        d, dtype = change.copied_bytes((1, d), dtype) // 8, "float64"
    elif any(inputs.name_of_dtype(x) == "float64" for x in arrays if hasattr(x, "dtype")):
        dtype = "float64"
    try:
        search_method(by_force(metric), "cpu").plan(
            make_problem(n, m, d, max(1, k), dtype=dtype, metric=metric, memory=1)
        )
    except BudgetExceeded as error:
        return error.least or 0
    return 0
