"""The verbs with rules of what may be found: `where`, `exclude`, groups and batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import rules_of
from tonari.filters.engine import Engine, on_host
from tonari.filters.nearest import nearest_allowed
from tonari.filters.rules import Rules
from tonari.filters.within import within_allowed
from tonari.graph.lists import Lists
from tonari.methods.answer import on_side_of
from tonari.methods.no_queries import none_nearest, refuse_unsupported
from tonari.methods.place import problem_of
from tonari.methods.radius import is_searched, search_within
from tonari.methods.registry import check_method, is_search
from tonari.methods.where import place_for
from tonari.metrics import get_metric


def refuse_plan(plan: Any) -> None:
    """Refuse a plan together with rules: it was made for a search of all points."""
    if plan is not None:
        raise ValueError("plan: was made for all points; leave it out with where, exclude, groups or batch")


def search_allowed(
    queries: Any,
    points: Any,
    k: int,
    given: dict[str, Any],
    *,
    metric: str,
    method: str,
    device: str | Sequence[str],
    progress: ProgressLike,
    **options: Any,
) -> Neighbors:
    """Search what rules allow; see :func:`tonari.search`."""
    place = place_for(device, queries=queries, points=points)
    looked_at = not (place.devices or get_metric(metric).bits)  # values that are checked in host memory
    threads = options.get("threads")
    if looked_at:
        base = inputs.as_rows(points, "points", check_values=False)
    else:
        base = place.rows(points, "points", metric, threads)
    rows = place.rows(queries, "queries", metric, threads)
    inputs.same_width(rows, base)
    problem = problem_of(place, base, rows, k, metric, **options)
    refuse_unsupported(problem, method)
    held: dict[str, Any] = {"threads": problem.threads, "memory": problem.memory}
    rules = rules_of(len(rows), len(base), **given)
    if not len(rows):
        return on_side_of(queries, none_nearest(problem, method))
    # A look at all points takes longer than a search of a few.
    late = looked_at and rules.shared is not None and not (rules.by_pairs or rules.grouped)
    base = base if late else place.rows(base, "points", metric, threads)
    engine = Engine(points=base, place=place, metric=metric, method=method, unchecked=late, **held)
    found = nearest_allowed(engine, rows, problem.k, rules, progress)
    return on_side_of(queries, found)


def graph_allowed(
    points: Any,
    k: int,
    given: dict[str, Any],
    *,
    metric: Any,
    method: str,
    include_self: bool,
    device: str | Sequence[str],
    progress: ProgressLike,
    threads: Any = None,
    memory: Any = None,
    **refused: Any,
) -> Lists:
    """Build the graph that rules allow; see :func:`tonari.knn_graph`. What is refused must not be given."""
    check_method(method)
    named = [name for name, value in refused.items() if value is not None]
    if named or not (method == "auto" or is_search(method)):
        named = named or [f"method={method!r}"]
        raise ValueError(f"{', '.join(named)}: where and batch are for exact graphs alone; leave it out")
    name = get_metric(metric).name
    include_self, progress = inputs.check_flag(include_self, "include_self"), inputs.check_progress(progress)
    place = place_for(device, points=points)
    rows = place.rows(points, "points", name, threads)
    n = len(rows)
    k = inputs.check_k(k, n if include_self else n - 1, without_self=not include_self)
    problem = problem_of(place, rows, rows, max(1, k - include_self), name, threads=threads, memory=memory)
    refuse_unsupported(problem, method)
    rules = rules_of(n, n, own=True, **given)
    if rules.mask is not None:
        raise ValueError(f"where: expected shape ({n},), one mask for all rows, got {rules.mask.shape}")
    if k == include_self:
        found = place.no_others(rows, name)
    else:
        held: dict[str, Any] = {"threads": problem.threads, "memory": problem.memory}
        engine = Engine(points=rows, place=place, metric=name, method=method, **held)
        found = nearest_allowed(engine, rows, k - include_self, rules, progress)
        if not isinstance(rows, np.ndarray):
            found = Neighbors(*(place.there(part) for part in found))
    found = place.with_self(found, rows, name) if include_self else found
    return Lists(on_side_of(points, found), name, "exact" if method == "auto" else method, include_self)


def radius_allowed(
    engine: Engine, queries: Any, limits: Any, rules: Rules, most: int | None, progress: ProgressLike
) -> RadiusNeighbors:
    """Find everything within the limits that rules allow, or the `most` nearest of it."""
    if most is not None and is_searched(most):
        found = nearest_allowed(engine, queries, min(most, engine.n), rules, progress)
        return search_within(on_host(found), limits, engine.metric)
    return within_allowed(engine, queries, limits, rules, most, progress)
