"""Weights, matrices, and metrics such as hellinger, which are computed as another metric of transformed rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tonari import inputs
from tonari.api.sparse.answers import are_sparse, changed_rows
from tonari.core.errors import Unsupported
from tonari.core.process.caches import cached
from tonari.graph.building.changed_rows import finished as finished_lists
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.options import COLUMNS
from tonari.methods.repeated import repeating
from tonari.metrics.transforms.change import Change, change_for, change_of
from tonari.spanning.tree import SpanningTree, with_weights

P = ParamSpec("P")
R = TypeVar("R")


_COLUMNS = frozenset(COLUMNS)
_change_by_name = cached(64)(change_of)


def on_changed_rows(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that it also supports metrics and weights that require transformed rows.

    If a metric, weights or a matrix require it, the wrapper transforms the rows, calls the function with the base
    metric, which compares transformed rows, and converts the values of the result. The function must have the arguments
    `points`, `metric` and all of `COLUMNS`; it may have `queries` and a radius. It never receives weights or a matrix,
    because the rows are already multiplied by them.
    """
    signature, again = inspect.signature(verb), repeating(verb)
    metric_by_default = signature.parameters["metric"].default

    @functools.wraps(verb)
    def changing(*args: P.args, **kwargs: P.kwargs) -> R:
        metric = kwargs.get("metric", metric_by_default)
        columns = {name: kwargs.pop(name) for name in _COLUMNS & kwargs.keys()} if kwargs else {}
        change = change_for(metric, **columns) if columns or type(metric) is not str else _change_by_name(metric)
        if change is None:
            return verb(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        if given.get("differentiable", False):
            raise Unsupported(
                "differentiable: not with weights, a matrix or a metric of changed rows; change the rows in torch, as "
                "by points * weights.sqrt() or points @ transform, and gradients flow through that too"
            )
        asked: dict[str, Any] = {name: given[name] for name in ("queries", "points") if name in given}
        if "differentiable" in signature.parameters:
            cure = "change the rows in torch, as by points * weights.sqrt() or points @ transform, and pass "
            cure += "differentiable=True"
            inputs.warn_of_dropped(asked, cure)
        if change.finish is not None and given.get("out") is not None:
            raise Unsupported(
                f"out: metric={change.metric!r} needs a last step that is not applied to files; leave out=, or pass "
                f"{change.instead}, with metric={change.base!r}"
            )
        first = "queries" if "queries" in given else "points"
        side = inputs.side_of(given[first], first)
        points = given["points"]
        threads = inputs.check_threads(given.get("threads"))
        given["points"] = _changed(change, points, "points", threads)
        if first == "queries":
            queries = given["queries"]
            given["queries"] = given["points"] if queries is points else _changed(change, queries, "queries", threads)
        if "radius" in signature.parameters:
            within = {"radius": given.get("radius"), "min_similarity": given.get("min_similarity")}
            given |= change.within(len(given[first]), **within, closed=given.get("closed", True))
        # P cannot describe arguments that are passed by name
        found: Any = again(**given | {"metric": change.base})  # type: ignore[call-arg]
        result: R = finished(change, found, side)
        return result

    return changing


def _changed(change: Change, x: Any, name: str, threads: int | None) -> Any:
    return changed_rows(change, x, name) if are_sparse(x) else change.rows(x, name, threads)


def finished(change: Change, found: Any, side: inputs.Side) -> Any:
    """Convert the distances in a result from the base metric to the requested one, in the caller's array library."""
    if isinstance(found, KNNGraph):
        return KNNGraph.of_lists(finished_lists(found.lists, change, side))
    if isinstance(found, SpanningTree):
        return with_weights(found, change.values(found.weights))
    if isinstance(found, tuple):
        return type(found)(*(inputs.hand_back(part, side) for part in _with_values(change, found)))
    # a path or an array of counts contains no distances
    return found if hasattr(found, "is_dir") else inputs.hand_back(found, side)


def _with_values(change: Change, found: Any) -> Any:
    return found._replace(distances=change.values(found.distances))
