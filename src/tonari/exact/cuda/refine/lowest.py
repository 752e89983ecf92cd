"""Refine the lowest groups of a screen's output, and bound the scores of all other points."""

from __future__ import annotations

from typing import Any

from tonari.core.results.neighbors import Neighbors
from tonari.cuda.compiling.rehearsal import least_of
from tonari.exact.cuda.refine.group_lists import Screened, parts_of
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.select.cuda.ordering.order import merge_lists


def refine_lowest(
    queries: Any,
    points: Any,
    screened: Screened,
    width: int,
    k: int,
    *,
    metric: str,
    own: Any,
    double: bool,
) -> tuple[Neighbors, Any]:
    """Find the k best points in the `width` groups with the smallest minima of each part of a screen's output.

    Parameters
    ----------
    queries, points, k, metric, own, double : as for :func:`tonari.exact.cuda.refine.groups.refine_groups`

    Returns
    -------
    Neighbors of tensors of shape (rows, k)
    float32 tensor of shape (rows,), or None
        A lower bound on the scores of all other points; None if no other points exist.
    """
    found: Any = None
    following: Any = None
    for part in parts_of(screened):
        chosen, beyond = part.lowest(width)
        here = refine_groups(queries, points, chosen, k, metric=metric, group=part.group, own=own, double=double)
        found = here if found is None else merge_lists(found, here, k, metric=metric)
        following = beyond if following is None else least_of(following, beyond)
    return Neighbors(*found), following
