"""Estimates that decide how points are found or counted, by a few queries and by the points that rules list."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from tonari import inputs
from tonari.filters import tuning
from tonari.filters.listed import PAIR, group_sizes, row_bytes
from tonari.filters.rules import Ids, Rules
from tonari.filters.scope import Scope


def near_some(ready: Scope, queries: Any, limits: npt.NDArray[Any], rows: Ids) -> Ids:
    """Count all points within the limits of some of these queries, at least one."""
    number = max(1, min(tuning.COUNTED_QUERIES, len(rows) // tuning.COUNTED_ONE_OF))
    some = rows[:: -(-len(rows) // number)]
    return ready.count(inputs.rows_at(queries, some), limits[some])


def are_short(near: Ids, n: int) -> bool:
    """Whether each query is expected to have few of the n points within its radius, by the counts of some queries."""
    return bool(tuning.SHORT_LISTS * near.max() <= n)


def is_listed_soon(scope: Scope, queries: Any, rules: Rules, *, filtered: bool = False) -> bool:
    """Whether computing exact values of all allowed points is preferred to a search of all points within the radius.

    If that search is `filtered`, it finds no forbidden points. Otherwise it lists all points for a block of queries,
    and forbidden points are dropped afterwards; it is not used if memory allows only blocks so small that dividing the
    queries takes additional time.
    """
    m, n = len(queries), scope.n
    if not filtered and scope.room // (PAIR * n + row_bytes(queries)) < min(m, tuning.UNCOUNTED_QUERIES):
        return True
    if rules.mask is None and not rules.grouped:
        return False  # most points are allowed
    most = tuning.SOON * scope.seconds(m, 1) * (scope.threads or 1)
    pairs = 0
    if rules.mask is not None:
        most -= tuning.LOOKED_AT * m * n
        pairs += 0 if most < 0 else int((n - rules.forbidden_bounds(scope.room)[1]).sum())
    if rules.query_groups is not None:
        pairs += int(group_sizes(rules).sum())
    return most >= 0 and scope.listed_seconds(m, pairs) < most


def are_few_forbidden(scope: Scope, near: Ids, rules: Rules, m: int) -> bool:
    """Whether computing exact values of all forbidden points is preferred to looking at all points within the radius.

    The number of forbidden points within the radius is then subtracted from the count of all points. For a few queries,
    two counts take too long.

    Parameters
    ----------
    near : int64 array
        Counts of all points within the limits of some of the queries.
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
