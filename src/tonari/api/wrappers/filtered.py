"""Searches restricted by filters (`where`, `exclude`, `exclude_within`, groups), and searches that return all ties."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.filters.arguments import Given
from tonari.filters.scope import Scope
from tonari.filters.searches.asking import nearest_with_ties
from tonari.filters.searches.nearest import nearest_allowed
from tonari.methods.call import Call
from tonari.methods.places.points import Points, none_nearest, none_within_radius, refuse_unsupported


def refuse_plan(plan: Any) -> None:
    """Raise ValueError if a plan is passed together with filters or ties, since plans assume a search of all points."""
    if plan is not None:
        raise ValueError(
            "plan: was made for all points; leave it out with where, exclude, exclude_within, groups, batch or ties"
        )


def search_allowed(call: Call, queries: Any, points: Any, k: Any, given: Given) -> Neighbors:
    """Find the k nearest points that the filters allow for every query; see :func:`tonari.search`."""
    own_checks = call.metric.bits or call.metric.missing
    looked_at = not (call.place.devices or own_checks)  # whether as_rows checks the values of points
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
    # If one mask allows few points, only these are checked, during the search; checking all points would take longer.
    late = looked_at and rules.shared is not None and not (rules.by_pairs or rules.grouped)
    base = call.rows(base, "points") if looked_at and not late else base
    return nearest_allowed(Scope(points=Points(base, call), unchecked=late), rows, problem.k, rules, call.progress)


def search_ties(call: Call, queries: Any, points: Any, k: Any, given: Given) -> RadiusNeighbors:
    """Find the k nearest allowed points of every query, and all others at the k-th distance.

    See :func:`tonari.search`.
    """
    rows, base = call.both(queries, points)
    problem = call.problem(base, rows, k)
    refuse_unsupported(problem, call.method)
    rules = given.rules(len(rows), len(base))
    if not len(rows):
        return none_within_radius(problem, call.method)
    return nearest_with_ties(Points(base, call), rows, problem.k, rules, call.progress)


def graph_ties(call: Call, points: Any, k: Any, given: Given) -> RadiusNeighbors:
    """Find the k nearest other points of every point, and all others at the k-th distance.

    See :func:`tonari.knn_graph`.
    """
    rows = call.rows(points, "points")
    those, k = Points(rows, call), inputs.check_k(k, len(rows) - 1, without_self=True)
    those.refuse_unsupported(rows, k)
    rules = given.rules(len(rows), len(rows), own=True)
    if rules is not None and rules.mask is not None:
        raise ValueError(f"where: expected shape ({len(rows)},), one mask for all rows, got {rules.mask.shape}")
    return nearest_with_ties(those, rows, k, rules, call.progress, self_join=True)
