"""Merge and change graphs whose metric is a base metric of transformed rows, such as mahalanobis.

The points are transformed as when the graph was built (``metrics/transforms/``), and the distances in its lists are
recomputed by the base metric. The lists are then merged or changed by the base metric, and the distances of the result
are converted to the graph's metric.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core._native import exact_values
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.graph import tuning
from tonari.graph.lists import Lists
from tonari.methods.call import Call
from tonari.methods.options import Options
from tonari.metrics.transforms.change import Change, change_of


def on_compared_rows(
    graphs: dict[str, Lists],
    arrays: dict[str, Any],
    answer: Callable[[list[Lists], list[Any], Call], Lists],
    options: Options,
) -> Lists:
    """Merge or change graphs whose metric compares transformed rows.

    Parameters
    ----------
    graphs : dict
        Each graph, under the name that its points have in `arrays`. All have the same metric, weights and matrix.
    arrays : dict
        The caller's arrays of rows, under their names in messages. The result is in the library of the first array.
    answer : callable(graphs, arrays, call)
        Merges or changes the graphs; it receives the base metric, and rows that are already transformed.
    options : Options
        The caller's options; their metric is replaced by that of the graphs.
    """
    first = next(iter(graphs.values()))
    change = change_of(first.metric, first.weights, first.transform)
    if change is None:
        return answer(
            list(graphs.values()), list(arrays.values()), Call.of(arrays, options._replace(metric=first.metric))
        )
    name, points = next(iter(arrays.items()))
    side, threads = inputs.side_of(points, name), inputs.check_threads(options.threads)
    rows = {name: change.rows(x, name, threads) if len(x) else x for name, x in arrays.items()}
    lists = [compared(graph, rows[name], name, change) for name, graph in graphs.items()]
    changed = answer(lists, list(rows.values()), Call.of(rows, options._replace(metric=change.base)))
    return finished(changed, change, side)


def finished(lists: Lists, change: Change, side: inputs.Side) -> Lists:
    """Convert a graph's distances from the base metric to the requested one, and its arrays to the caller's library."""
    distances, indices = lists.found
    found = Neighbors(*(inputs.hand_back(part, side) for part in (change.values(distances), indices)))
    return dataclasses.replace(lists, found=found, metric=change.metric, **change.columns)


def compared(lists: Lists, rows: Any, name: str, change: Change) -> Lists:
    """Return a graph with the distances of the base metric, recomputed from the transformed rows.

    If the metric and its base metric have the same values, nothing is recomputed.

    Raises
    ------
    ValueError
        The recomputed distances differ from the graph's, so the graph was built from other points. The message calls
        the points `name`.
    """
    changed = dataclasses.replace(lists, metric=change.base, weights=None, transform=None)
    if change.finish is None:
        return changed
    if lists.n != len(rows):
        raise ValueError(f"the graph has {lists.n} rows, {name} {len(rows)}: they must be the same points")
    held, found = inputs.held(inputs.to_host(rows)), lists.in_numpy()
    values = np.empty(found.indices.shape)
    for part in cut(lists.n, max(1, tuning.READ_AT_ONCE // max(1, lists.k))):
        ids = np.ascontiguousarray(np.maximum(found.indices[part], 0), np.int64)
        exact_values(change.base, held[part], held, ids, values[part])
    values[found.indices < 0] = np.inf
    wrong = np.argwhere(change.values(values) != found.distances)
    if len(wrong):
        row, column = (int(at) for at in wrong[0])
        other = int(found.indices[row, column])
        raise ValueError(
            f"the graph: row {row} lists point {other} with {lists.metric} {found.distances[row, column]}, but rows "
            f"{row} and {other} of {name} have {change.values(values)[row, column]}: pass the points of the graph, "
            "in the same order"
        )
    return dataclasses.replace(changed, found=Neighbors(values, found.indices))
