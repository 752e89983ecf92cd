"""What rules allow to be found in the points of an Index, which may have several segments.

Rules are about ids. Each segment is searched with the rules for its own ids, less those that are removed, and the lists
are merged: what may be found of a segment does not depend on the others.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.api.filtered import radius_allowed
from tonari.api.joining import allowed_ones, join
from tonari.api.part import Part
from tonari.api.state import State
from tonari.core.neighbors import Neighbors, index_dtype
from tonari.core.progress import ProgressLike
from tonari.core.radius_neighbors import RadiusNeighbors
from tonari.filters.counting import count_allowed
from tonari.filters.engine import on_host
from tonari.filters.nearest import nearest_allowed
from tonari.filters.rules import Rules
from tonari.filters.shared import SharedMask


def nearest_in(
    now: State, rows: Any, k: int, rules: Rules, threads: int | None, metric: str, progress: ProgressLike
) -> Neighbors:
    """Find the k nearest points that each query may find, k at most n; -1 where there are fewer."""
    if _is_plain(now):
        return nearest_allowed(now.parts[0].segment.engine(threads), rows, k, rules, progress)

    def find(part: Part, held: int, shown: ProgressLike) -> Neighbors:
        engine = part.read().engine(threads, taken=held, around=True)
        near = nearest_allowed(engine, rows, min(k, engine.n), _rules_of(part, rules), shown)
        return allowed_ones(on_host(near), part.names(index_dtype(now.next_id)))

    return join(now.each(find, progress, len(rows) * k), k, metric)


def within_in(
    now: State,
    rows: Any,
    limits: npt.NDArray[Any],
    most: int | None,
    rules: Rules,
    threads: int | None,
    metric: str,
    progress: ProgressLike,
) -> RadiusNeighbors:
    """Find all points within the limits that each query may find, or the `most` nearest of them, in host memory."""
    if _is_plain(now):
        return radius_allowed(now.parts[0].segment.engine(threads), rows, limits, rules, most, progress)

    def find(part: Part, held: int, shown: ProgressLike) -> tuple[RadiusNeighbors, Any]:
        engine = part.read().engine(threads, taken=held, around=True)
        near = radius_allowed(engine, rows, limits, _rules_of(part, rules), most, shown)
        return near, part.names(index_dtype(now.next_id))

    return now.joined_within(now.each(find, progress), limits, most, metric)


def count_in(
    now: State, rows: Any, limits: npt.NDArray[Any], rules: Rules, threads: int | None, progress: ProgressLike
) -> Any:
    """Count the points within the limits that each query may find, in host memory."""
    if _is_plain(now):
        return count_allowed(now.parts[0].segment.engine(threads), rows, limits, rules, progress)

    def count(part: Part, held: int, shown: ProgressLike) -> Any:
        engine = part.read().engine(threads, taken=held, around=True)
        return count_allowed(engine, rows, limits, _rules_of(part, rules), shown)

    return np.sum([np.zeros(len(limits), np.int64), *now.each(count, progress)], axis=0)


def _is_plain(now: State) -> bool:
    """Whether rules about ids are rules about the rows of one segment."""
    return now.only is not None and now.next_id == now.n


def _rules_of(part: Part, rules: Rules) -> Rules:
    """Return the rules for the rows of a part."""
    if len(part.gone):
        shared = np.ones(rules.n, bool) if rules.shared is None else rules.shared.host.copy()
        shared[part.ids[part.gone]] = False
        rules = dataclasses.replace(rules, shared=SharedMask(shared))
    return rules.part(None, part.ids)
