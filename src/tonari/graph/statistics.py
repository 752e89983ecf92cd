"""Numbers that describe the distances of a graph."""

from __future__ import annotations

import numpy as np

from tonari.graph.lists import Lists
from tonari.metrics import get_metric


def distance_range(lists: Lists, column: int) -> dict[str, float] | None:
    """Return the minimum, median and maximum of a column of distances.

    Parameters
    ----------
    lists : Lists
        The graph; missing neighbours, and the column of self where there is one, do not count.
    column : int
        0 is the nearest neighbour, -1 the farthest that the lists have room for.

    Returns
    -------
    dict with "min", "median" and "max", in the units of the metric; None if no point has a neighbour there.
    """
    found = lists.in_numpy()
    first = int(lists.include_self)
    if found.indices.shape[1] == first:
        return None
    present = found.indices[:, first:][:, column] >= 0
    values = found.distances[:, first:][:, column][present].astype(np.float64)
    if not len(values):
        return None
    return {"min": float(values.min()), "median": float(np.median(values)), "max": float(values.max())}


def zero_distances(lists: Lists) -> int | None:
    """Count the entries, self aside, whose distance is 0; None for a similarity, where 0 does not mean equal."""
    if get_metric(lists.metric).descending:
        return None
    found = lists.in_numpy()
    first = int(lists.include_self)
    return int(((found.distances[:, first:] == 0) & (found.indices[:, first:] >= 0)).sum())
