"""Chooses the cases of a parametrized test that the thin suite runs: all pairs of values occur.

Most faults depend on one value of one parameter or on the values of two (Kuhn, Wallace and Gallo 2004). If a test has
three parameters or more, a covering array stays in the thin suite: each value of a parameter occurs with each value of
every other parameter, if the full product has such a case. The other cases get the marker ``full``. Those that are not
needed for all triples of values of three parameters to occur also get the marker ``exhaustive``.

If Triton's interpreter runs the kernels, a case takes a thousand times as long as compiled code. Then the chosen cases
only contain each value of each parameter once; all other cases are ``full`` and ``exhaustive``, and run on machines
with a GPU.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

# The parameters of a case, as positions of their values in the lists of values.
Case = tuple[int, ...]

# Metrics that use the kernels of another metric on a GPU; the interpreter needs to run only one metric of each class.
SAME_KERNELS = {"sqeuclidean": "euclidean", "correlation": "cosine"}


def covering(cases: Sequence[Case], strength: int = 2) -> list[int]:
    """Choose cases greedily that together contain all combinations of values, the same in every run; return positions.

    `strength` is the size of the combinations of values of different parameters: 1 for every value, 2 for every pair.

    >>> covering([(a, b, c) for a in range(2) for b in range(2) for c in range(2)])
    [0, 3, 5, 6]
    >>> covering([(a, b) for a in range(3) for b in range(2)], strength=1)
    [0, 3, 4]
    """
    if cases and len(cases[0]) <= strength:
        return list(range(len(cases)))
    held = [set(itertools.combinations(enumerate(case), strength)) for case in cases]
    holders = defaultdict(list)
    for at, each in enumerate(held):
        for values in each:
            holders[values].append(at)
    missing, gain, taken = set(holders), [len(each) for each in held], []
    best_first = [(-len(each), at) for at, each in enumerate(held)]  # a heap; some gains are outdated
    heapq.heapify(best_first)
    while missing:
        stale, best = heapq.heappop(best_first)
        if gain[best] != -stale:
            heapq.heappush(best_first, (-gain[best], best))
            continue
        taken.append(best)
        for values in held[best] & missing:
            missing.discard(values)
            for at in holders[values]:
                gain[at] -= 1
    return sorted(taken)


def mark_beyond_pairs(items: Sequence[pytest.Item]) -> None:
    """Give the markers ``full`` and ``exhaustive`` to the cases that the thin suite and the interpreter leave out."""
    tests = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for each in tests.values():
        parameters = [item.callspec.params for item in each]
        interpreted = each[0].get_closest_marker("interpreter") is not None
        for item, markers in zip(each, markers_of(parameters, interpreted=interpreted), strict=True):
            for marker in markers:
                item.add_marker(marker)


def markers_of(parameters: Sequence[dict[str, Any]], *, interpreted: bool) -> list[list[str]]:
    """Return the markers of each case of a test: none, ``full``, or both ``full`` and ``exhaustive``."""
    thin = chosen(parameters, 1 if interpreted else 2, interpreted=interpreted)
    full = thin if interpreted else thin | chosen(parameters, 3)
    return [[] if at in thin else ["full"] if at in full else ["full", "exhaustive"] for at in range(len(parameters))]


def chosen(parameters: Sequence[dict[str, Any]], strength: int, *, interpreted: bool = False) -> set[int]:
    """Return the positions of the cases in a covering array.

    If Triton's interpreter runs the kernels, a case is left out if its metric uses another case's kernels.
    """
    same: set[str] = set()
    if interpreted:
        metrics = {repr(each.get("metric")) for each in parameters}
        same = {repr(metric) for metric, other in SAME_KERNELS.items() if repr(other) in metrics}
    stay = [at for at, each in enumerate(parameters) if repr(each.get("metric")) not in same]
    return {stay[at] for at in covering(_cases([parameters[at] for at in stay]), strength)}


def _cases(parameters: Sequence[dict[str, Any]]) -> list[Case]:
    """Return each case's parameters as positions of values; values that look the same have the same position."""
    seen: dict[str, dict[Any, int]] = defaultdict(dict)
    looks: dict[int, Any] = {}  # a cache by the identity of values, which many cases share

    def position(name: str, value: Any) -> int:
        if id(value) not in looks:
            looks[id(value)] = _looks(value)
        return seen[name].setdefault(looks[id(value)], len(seen[name]))

    return [tuple(position(name, value) for name, value in sorted(each.items())) for each in parameters]


def _looks(value: Any) -> Any:
    """Return a key that two values share if they look the same; for arrays, the dtype, shape and ends."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.flat[:64].tobytes(), value.flat[-64:].tobytes()
    if type(value) in (list, tuple):
        return type(value), *map(_looks, value)
    if type(value) is dict:
        return tuple((key, _looks(each)) for key, each in value.items())
    return repr(value)
