"""Estimates that choose the method of a radius search or count, from a few counted queries and the lengths of lists."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.filters import tuning
from tonari.filters.listed import PAIR, group_sizes, row_bytes
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope


def near_some(ready: Scope, queries: Any, limits: npt.NDArray[Any], rows: Ids) -> Ids:
    """Count all points within the radius for a sample of the queries `rows`; at least one query is needed."""
    number = max(1, min(tuning.COUNTED_QUERIES, len(rows) // tuning.COUNTED_ONE_OF))
    some = rows[:: -(-len(rows) // number)]
    return ready.count(inputs.rows_at(queries, some), limits[some])


def are_short(near: Ids, n: int) -> bool:
    """Return whether few of the n points are within any query's radius, judging by the counts of a sample."""
    return bool(tuning.SHORT_LISTS * near.max() <= n)


def is_listed_soon(scope: Scope, queries: Any, rules: Rules, *, filtered: bool = False) -> bool:
    """Return whether to compute exact values of all allowed points instead of a search within the radius.

    With `filtered`, the search itself leaves out forbidden points. Otherwise it lists all points for a block of
    queries, and forbidden points are dropped afterwards; this is not done if memory is too small for large blocks.
    """
    m, n = len(queries), scope.n
    if not filtered and scope.room // (PAIR * n + row_bytes(queries)) < min(m, tuning.UNCOUNTED_QUERIES):
        return True
    if rules.mask is None and not rules.grouped:
        return False  # other rules usually allow most points
    most = tuning.SOON * scope.seconds(m, 1) * (scope.threads or 1)
    pairs = 0
    if rules.mask is not None:
        most -= tuning.LOOKED_AT * m * n
        pairs += 0 if most < 0 else int((n - rules.forbidden_bounds(scope.room)[1]).sum())
    if rules.query_groups is not None:
        pairs += int(group_sizes(rules).sum())
    return most >= 0 and scope.listed_seconds(m, pairs) < most


def are_few_forbidden(scope: Scope, near: Ids, rules: Rules, m: int) -> bool:
    """Return whether to count forbidden points by exact values and subtract them from the count of all points.

    The alternative is to check the rules for each point within the radius. For a few queries, two counts always take
    too long.

    Parameters
    ----------
    near : int64 array
        For each query of a sample, the number of points within the radius.
    m : int
        The number of all queries.
    """
    if rules.mask is not None or rules.grouped or m < tuning.UNCOUNTED_QUERIES:
        return False
    pairs = m if rules.own else 0
    if rules.query_groups is not None:
        pairs += int(group_sizes(rules).sum())
    if rules.window is not None:
        pairs += m * min(scope.n, 2 * rules.window + 1)
    if rules.excluded is not None:
        pairs += len(rules.excluded.ids) * m // rules.m
    return scope.listed_seconds(m, pairs) < tuning.LISTED_POINT * float(near.mean()) * m
