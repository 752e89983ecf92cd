"""Searches among allowed points: `where`, `exclude` and groups."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.filters.arguments import Given
from tonari.filters.nearest import nearest_allowed
from tonari.filters.scope import Scope
from tonari.methods.call import Call
from tonari.methods.rows.no_queries import none_nearest, refuse_unsupported
from tonari.methods.rows.points import Points


def refuse_plan(plan: Any) -> None:
    """Refuse a plan together with filters, since a plan is made for a search of all points."""
    if plan is not None:
        raise ValueError(
            "plan: was made for all points; leave it out with where, exclude, exclude_within, groups or batch"
        )


def search_allowed(call: Call, queries: Any, points: Any, k: Any, given: Given) -> Neighbors:
    """Search the points that the filters allow; see :func:`tonari.search`."""
    looked_at = not (call.place.devices or call.metric.bits)  # values that are checked in host memory
    base = inputs.as_rows(points, "points", check_values=False) if looked_at else call.rows(points, "points")
    rows = call.rows(queries, "queries")
    inputs.same_width(rows, base)
    if call.metric.bits:
        inputs.same_bits(inputs.bool_columns(queries), inputs.bool_columns(points))
    problem = call.problem(base, rows, k)
    refuse_unsupported(problem, call.method)
    rules = given.rules(len(rows), len(base))
    assert rules is not None
    if not len(rows):
        return none_nearest(problem, call.method)
    # Checking all points takes longer than searching a few.
    late = looked_at and rules.shared is not None and not (rules.by_pairs or rules.grouped)
    base = call.rows(base, "points") if looked_at and not late else base
    return nearest_allowed(Scope(points=Points(base, call), unchecked=late), rows, problem.k, rules, call.progress)
