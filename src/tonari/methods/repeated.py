"""Repeated searches on the CPU: the checks and decisions of a search are cached for equal ones.

Two searches are equal in this sense if they differ only in the values and addresses of their rows. All checks of
arguments, except those of values, then have the same result, and so has planning. For a search of microseconds these
take most of the time, so `tonari.search` calls :func:`answered` first. A cached decision depends only on sizes and on
the number of free processors. `tonari.exact.cuda.replay.cache` is the counterpart on CUDA.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np

from tonari.core._native import environment
from tonari.core.caches import emptied_by
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.core.workers import default_threads
from tonari.inputs import check_progress
from tonari.methods import tuning
from tonari.methods.answer import PLAN_VARIABLES, answer, checked, processors_of
from tonari.methods.call import Call
from tonari.methods.decision import Decision

Key: TypeAlias = tuple[Hashable, ...]

_kept: dict[Key, tuple[Call, Decision, int | None]] = {}  # with the processors that the plan depends on
emptied_by(_kept.clear)


def facts_of(x: Any) -> Key | None:
    """Return the shape and dtype of an array, which decide how it is searched; None if it would have to be converted.

    >>> facts_of(np.zeros((2, 3), np.float32))
    ((2, 3), dtype('float32'))
    """
    if type(x) is not np.ndarray or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    return x.shape, x.dtype


def key_of(queries: Any, points: Any, k: Any, *words: Any) -> Key | None:
    """Return the cache key of a search; `words` are its string arguments. None if the search is not cached."""
    ours, theirs = facts_of(queries), facts_of(points)
    # True == 1 and 5.0 == 5, but neither is a k.
    if ours is None or theirs is None or type(k) is not int or any(type(word) is not str for word in words):
        return None
    return ours, theirs, k, words, environment(*PLAN_VARIABLES)


def answered(key: Key | None, queries: Any, points: Any, progress: ProgressLike) -> Neighbors | None:
    """Answer a search by the cached decision of an equal one; None if there is none.

    Raises
    ------
    TypeError, ValueError
        As for a first search, for `progress` and the values of the rows.
    """
    kept = None if key is None else _kept.get(key)
    if kept is None:
        return None
    call, decision, processors = kept
    if processors is not None and processors != default_threads():
        return None
    progress = None if progress is None else check_progress(progress)
    found: Neighbors | None = decision.method.search_unchecked(queries, points, decision.plan, progress=progress)
    if found is not None:
        return checked(found, queries, points, call.metric)
    return answer(*call.both(queries, points), decision, call.metric, progress)


def keep(key: Key | None, call: Call, decision: Decision) -> None:
    """Cache the decision of a call whose rows needed no conversion."""
    if key is None or decision.by_data or decision.prepared is not None:
        return
    if len(_kept) >= tuning.KEPT_SEARCHES:
        _kept.clear()
    _kept[key] = call, decision, processors_of(decision)
