"""The argument `differentiable` of the public functions: results whose distances carry gradients to the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors

Found = TypeVar("Found", Neighbors, RadiusNeighbors)


def carries(differentiable: bool, queries: Any, points: Any, metric: str) -> Callable[[Found], Found]:
    """Check the argument `differentiable`, and return the function that attaches gradients to a result's distances.

    Parameters
    ----------
    differentiable : bool
        If False, the returned function changes no result, and a warning is issued if rows require gradients.
    queries, points : array-likes of shape (m, d) and (n, d)
        The caller's rows; with `differentiable`, floating torch tensors, to which gradients flow.
    metric : str
        A name in ``tonari.metrics.METRICS``.

    Raises
    ------
    TypeError
        `queries` or `points` is not a torch tensor of a floating dtype, or `differentiable` is not a bool.
    Unsupported
        The metric has no derivative.
    """
    if not inputs.check_flag(differentiable, "differentiable"):
        inputs.warn_of_dropped({"queries": queries, "points": points}, "pass differentiable=True")
        return _as_it_is
    for name, rows in (("queries", queries), ("points", points)):
        if inputs.kind_of(rows) != "torch" or not rows.is_floating_point():
            what = f"{inputs.name_of_dtype(rows)} of torch" if inputs.kind_of(rows) == "torch" else type(rows).__name__
            raise TypeError(f"differentiable=True: expected torch tensors of a floating dtype; {name}: got {what}")
    from tonari.metrics import gradients  # this module imports torch, which is optional

    if metric not in gradients.VALUES:
        known = ", ".join(gradients.VALUES)
        raise Unsupported(f"differentiable=True: there is no derivative of metric {metric!r}, expected one of {known}")
    return lambda found: gradients.with_gradients(found, queries, points, metric)


def _as_it_is(found: Found) -> Found:
    return found
