"""Repeated searches on the CPU: the checks and decisions of a search are cached for equal searches.

Two searches are called equal here if they differ only in the values and addresses of their rows. For equal searches,
all checks of arguments, except the checks of values, have the same result, and the plan is the same. A search that
takes only microseconds would spend most of its time on checks and planning, so the public functions look for a cached
decision first: `tonari.search` by :func:`answered`, graphs by :func:`graph`, and searches within a radius by
:func:`within`. A cached decision depends only on sizes and on the number of free processors.
`tonari.exact.cuda.replay.cache` is the counterpart on CUDA.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tonari.core._native import environment
from tonari.core.process.caches import emptied_by
from tonari.core.process.progress import ProgressLike
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Record, recording
from tonari.inputs import check_progress
from tonari.methods import tuning
from tonari.methods.answer import PLAN_VARIABLES, answer, checked, processors_of
from tonari.methods.call import Call
from tonari.methods.decision import Decision
from tonari.methods.rows.points import DecidedPoints

Key: TypeAlias = tuple[Hashable, ...]


class Kept(NamedTuple):
    """The cached decision of a call whose rows did not have to be converted.

    Attributes
    ----------
    call : Call
    decision : Decision
        The decision, without prepared points.
    processors : int, optional
        The number of free processors, if the plan depends on it.
    limits : array of shape (m,), optional
        The limits of a search within a radius.
    """

    call: Call
    decision: Decision
    processors: int | None
    limits: npt.NDArray[Any] | None = None


_kept: dict[Key, Kept] = {}
emptied_by(_kept.clear)


def facts_of(x: Any) -> Key | None:
    """Return the shape and dtype of an array, which determine decisions; None if the array would have to be converted.

    >>> facts_of(np.zeros((2, 3), np.float32))
    ((2, 3), dtype('float32'))
    """
    if type(x) is not np.ndarray or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    return x.shape, x.dtype


def key_of(queries: Any, points: Any, k: Any, *words: Any) -> Key | None:
    """Return the cache key of a search, or None if the search is not cached; `words` are its string arguments."""
    ours = facts_of(queries)
    theirs = ours if points is queries else facts_of(points)
    # True == 1 and 5.0 == 5, but neither is a k.
    if ours is None or theirs is None or type(k) is not int:
        return None
    for word in words:
        if type(word) is not str:
            return None
    return ours, theirs, k, words, environment(*PLAN_VARIABLES)


def answered(key: Key | None, queries: Any, points: Any, progress: ProgressLike) -> Neighbors | None:
    """Answer a search by the cached decision of an equal one; return None if no decision is cached.

    Raises
    ------
    TypeError, ValueError
        As for a first search: `progress` or the values of the rows are invalid.
    """
    entry = _valid(key)
    if entry is None:
        return None
    call, decision = entry.call, entry.decision
    progress = None if progress is None else check_progress(progress)
    found = decision.search_unchecked(queries, points, progress)
    if found is not None:
        return checked(found, queries, points, call.metric)
    return answer(*call.both(queries, points), decision, call.metric, progress)


def graph(key: Key | None, points: Any, progress: ProgressLike) -> tuple[Neighbors, Kept, Record] | None:
    """Build a graph by the cached decision of an equal call.

    Returns its lists, the call and a record, or None if no decision is cached.
    """
    entry = _valid(key)
    if entry is None:
        return None
    progress = None if progress is None else check_progress(progress)
    rows = entry.call.rows(points, "points")
    with recording("knn_graph", len(rows)) as record:
        found = answer(rows, rows, entry.decision, entry.call.metric, progress, self_join=True)
    return found, entry, record


def key_within(queries: Any, points: Any, radius: Any, min_similarity: Any, closed: Any, *words: Any) -> Key | None:
    """Return the key of a search within one radius; see :func:`key_of`."""
    one = radius if min_similarity is None else min_similarity
    if (radius is None) == (min_similarity is None) or type(one) not in (float, int) or type(closed) is not bool:
        return None
    key = key_of(queries, points, 1, *words)
    return None if key is None else (key, radius, min_similarity, closed)


def within(
    key: Key | None, queries: Any, points: Any, progress: ProgressLike
) -> tuple[Any, DecidedPoints, npt.NDArray[Any]] | None:
    """Return the checked queries, the prepared points and the limits of a radius search, by an equal earlier search.

    Return None if no equal search is cached. Raises TypeError and ValueError like :func:`answered`.
    """
    entry = _valid(key)
    if entry is None:
        return None
    assert entry.limits is not None
    call, decision = entry.call if progress is None else entry.call.with_progress(progress), entry.decision
    rows, base = call.both(queries, points)
    prepared = decision.method.prepare_within(base, decision.plan, call.progress)
    renewed = Decision(decision.method, decision.plan, prepared, decision.seconds, decision.reason)
    return rows, DecidedPoints(base, call, renewed), entry.limits


def keep(key: Key | None, call: Call, decision: Decision, limits: npt.NDArray[Any] | None = None) -> None:
    """Cache the decision of a call whose rows did not have to be converted.

    For a radius search, which has `limits`, the prepared points are not cached, since the next call has other points.
    """
    if limits is not None:
        decision = decision._replace(prepared=None)
    if key is None or decision.by_data or decision.prepared is not None:
        return
    if len(_kept) >= tuning.KEPT_SEARCHES:
        _kept.clear()
    _kept[key] = Kept(call.with_progress(None), decision, processors_of(decision), limits)


def _valid(key: Key | None) -> Kept | None:
    entry = None if key is None else _kept.get(key)
    if entry is None or (entry.processors is not None and entry.processors != default_threads()):
        return None
    return entry
