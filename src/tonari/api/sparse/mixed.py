"""Calls with sparse queries and dense points, or the reverse: one array is converted to the layout of the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from tonari import inputs
from tonari.api.sparse.answers import are_sparse, check_place, checked_metric, refuse_for_sparse
from tonari.sparse.dense import compressed
from tonari.sparse.rows import as_sparse_rows

P = ParamSpec("P")
R = TypeVar("R")


def in_one_layout(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function of queries and points, so that one of them may be sparse and the other dense.

    The array with fewer rows is converted to the layout of the other, so the copy has at most 12 bytes for each number
    of the dense array. If both have the same number of rows, the queries are converted. No value changes, so the answer
    has the same bits as with two sparse or two dense arrays. Such a call supports the metrics, methods and devices of
    sparse rows, whichever array is longer.
    """

    @functools.wraps(verb)
    def calling(*args: P.args, **kwargs: P.kwargs) -> R:
        given = dict(zip(("queries", "points"), args, strict=False)) | kwargs
        if are_sparse(given.get("queries")) == are_sparse(given.get("points")):
            return verb(*args, **kwargs)
        queries, points = given.pop("queries"), given.pop("points")
        refuse_for_sparse(**{name: given.get(name) for name in ("differentiable", "plan")})
        sets = checked_metric(given.get("metric", "euclidean")).bits
        check_place(given.get("method", "auto"), given.get("device", "auto"))
        side = inputs.side_of(queries, "queries")
        # type checkers cannot match the other arguments with P
        found: Any = verb(*_both(queries, points, sets=sets), *args[2:], **given)  # type: ignore[arg-type]
        if isinstance(found, tuple):
            return cast(R, type(found)(*(inputs.hand_back(part, side) for part in found)))
        return cast(R, inputs.hand_back(found, side))

    return calling


def _both(queries: Any, points: Any, *, sets: bool) -> tuple[Any, Any]:
    """Return queries and points in the same layout, which is sparse if rows are compared as sets."""
    rows = {
        name: as_sparse_rows(x, name, sets=sets) if are_sparse(x) else x
        for name, x in (("queries", queries), ("points", points))
    }
    dense = "points" if are_sparse(queries) else "queries"
    sparse = "queries" if dense == "points" else "points"
    if sets or len(rows[dense]) < len(rows[sparse]) or (dense == "queries" and len(rows[dense]) == len(rows[sparse])):
        rows[dense] = compressed(rows[dense], dense, sets=sets)
    else:
        rows[sparse] = rows[sparse].toarray()
    return rows["queries"], rows["points"]
