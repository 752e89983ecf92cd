"""Few points for each query: the exact values of all that it may find."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import Progress
from tonari.filters.engine import Engine, rows_at
from tonari.filters.rules import Ids, Rules
from tonari.metrics import get_metric

_PAIRS = 1 << 22  # pairs that are checked by rules at a time


def nothing(m: int, k: int, engine: Engine, queries: Any, n: int) -> Neighbors:
    """Return lists of m queries in which all is missing, in host memory."""
    wide = any("float64" in str(rows.dtype) for rows in (queries, engine.points))
    far = -np.inf if get_metric(engine.metric).descending else np.inf
    distances = np.full((m, k), far, np.float64 if wide else np.float32)
    return Neighbors(distances, np.full((m, k), -1, index_dtype(n)))


def by_lists(
    engine: Engine,
    queries: Any,
    k: int,
    rules: Rules,
    found: Neighbors,
    bar: Progress,
    *,
    rows: Ids,
    order: Ids,
    begins: Ids,
    ends: Ids,
) -> None:
    """Find the k nearest of what some queries may find among listed points, and write it to their rows of `found`.

    Parameters
    ----------
    rows : int64 array
        Places of the queries.
    order : int64 array
        Places of points.
    begins, ends : int64 arrays of shape (len(rows),)
        Query ``rows[i]`` is compared with ``order[begins[i]:ends[i]]``, which ascend, as far as rules allow.
    """
    own = rules.own_places()
    if not rules.by_pairs and rules.shared is None:
        whole = len(rows) == len(queries) and bool((rows == np.arange(len(rows))).all())
        own = None if own is None else own[rows]
        if whole:
            engine.listed(queries, k, order, begins, ends, own, found)
        else:
            part = engine.listed(rows_at(queries, rows), k, order, begins, ends, own)
            for mine, new in zip(found, part, strict=True):
                mine[rows] = new
        bar.add(len(rows))
        return
    ahead = np.concatenate([[0], np.cumsum(ends - begins)])
    at = 0
    while at < len(rows):
        stop = max(at + 1, int(np.searchsorted(ahead, ahead[at] + _PAIRS, "right")) - 1)
        some, counts = rows[at:stop], np.diff(ahead[at : stop + 1])
        places = np.arange(ahead[at], ahead[stop]) + np.repeat(begins[at:stop] - ahead[at:stop], counts)
        ids, asked_by = order[places], np.repeat(np.arange(len(some)), counts)
        kept = rules.allowed(some[asked_by], ids)
        bounds = np.concatenate([[0], np.cumsum(np.bincount(asked_by[kept], minlength=len(some)))])
        part = engine.listed(rows_at(queries, some), k, ids[kept], bounds[:-1], bounds[1:])
        for mine, new in zip(found, part, strict=True):
            mine[some] = new
        bar.add(len(some))
        at = stop


def groups_of(rules: Rules) -> tuple[Ids, Ids, Ids]:
    """Return the points that are searched, by group, and for each query where those of its group begin and end."""
    assert rules.query_groups is not None
    assert rules.point_groups is not None
    points = rules.point_groups if rules.ids is None else rules.point_groups[rules.ids]
    asked = rules.query_groups if rules.rows is None else rules.query_groups[rules.rows]
    order = np.argsort(points, kind="stable")
    groups = points[order]
    return order, _first(groups, asked, "left"), _first(groups, asked, "right")


def _first(groups: Ids, asked: Ids, side: Any) -> npt.NDArray[np.int64]:
    return np.searchsorted(groups, asked, side)
