"""Searches on the CPU that are repeated: what was decided for one is kept for those like it.

Two searches are alike if they differ only in the values and addresses of their rows. Then all checks of arguments,
except those of values, have the same outcome, and so has planning; of a search of microseconds these are the most part.
Therefore the public functions look here first, by :func:`answered`. Kept is what follows from sizes alone, and does not
depend on how many processors are free to use. `tonari.exact.cuda.replay.cache` is the like for CUDA.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np

from tonari.core._native import environment
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.inputs import check_progress
from tonari.methods.decision import Decision
from tonari.methods.place import CpuPlace
from tonari.methods.value_range import check_range

Key: TypeAlias = tuple[Hashable, ...]

KEPT = 256
_CPU = CpuPlace()
_kept: dict[Key, Decision] = {}


def facts_of(x: Any) -> Key | None:
    """Return what decides about an array, beside its values; None for one that methods do not read as it is.

    >>> facts_of(np.zeros((2, 3), np.float32))
    ((2, 3), dtype('float32'))
    """
    if type(x) is not np.ndarray or not x.flags.c_contiguous or not x.flags.aligned:
        return None
    return x.shape, x.dtype


def plan_variables() -> Key:
    """Return the environment variables that plans depend on."""
    return environment("TONARI_ISA", "TONARI_NUM_THREADS")


def key_of(queries: Any, points: Any, k: Any, *words: Any) -> Key | None:
    """Return the key of a search by its arguments; `words` are those that are strings. None if it is not kept."""
    ours, theirs = facts_of(queries), facts_of(points)
    # True == 1 and 5.0 == 5, but neither is a k.
    if ours is None or theirs is None or type(k) is not int or any(type(word) is not str for word in words):
        return None
    return ours, theirs, k, words, plan_variables()


def answered(key: Key | None, queries: Any, points: Any, progress: ProgressLike) -> Neighbors | None:
    """Answer a search like an earlier one; None if there was none.

    Raises
    ------
    TypeError, ValueError
        For `progress`, and for the values of the rows, as for a first search.
    """
    kept = None if key is None else _kept.get(key)
    if kept is None:
        return None
    method, plan, progress = kept.method, kept.plan, check_progress(progress)
    found: Neighbors | None = method.search_unchecked(queries, points, plan, progress=progress)
    if found is None:
        base = _CPU.rows(points, "points", plan.metric, plan.threads)
        rows = _CPU.rows(queries, "queries", plan.metric, plan.threads)
        found = method.search_once(rows, base, plan, progress=progress)
    check_range(found.distances, found.indices, None, queries, points, plan.metric)
    return found


def keep(key: Key | None, decision: Decision) -> None:
    """Keep a decision for searches of checked rows that were given as they are."""
    if key is None or decision.by_data or decision.plan.threads != 1:
        return
    if len(_kept) >= KEPT:
        _kept.clear()
    _kept[key] = decision
