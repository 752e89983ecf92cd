"""Which cases of a parametrized test the thin suite takes: those in which every two values meet once.

Most faults show for one value of one parameter or for a pair of two (Kuhn, Wallace and Gallo 2004). So of a test with
three parameters or more, a covering array stays in the thin suite: each value of each parameter meets each value of
each other one, as far as the full product lets them meet. The marker ``full`` is for the others: every three values
meet among those without the marker ``exhaustive``, which all that is left gets, too.

Where Triton's interpreter runs the kernels, a case takes a thousand times as long as compiled code does: there each
value of each parameter stays once, and all other cases are ``full`` and ``exhaustive``. They run where there is a card.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

# Parameters of a case, by the position of each value in its list.
Case = tuple[int, ...]

# Metrics that take another one's kernels on a GPU: for the interpreter one of each class is enough.
SAME_KERNELS = {"sqeuclidean": "euclidean", "correlation": "cosine"}


def covering(cases: Sequence[Case], strength: int = 2) -> list[int]:
    """Positions of cases that hold all values that any case holds together, chosen greedily, the same in every run.

    Together are as many values of different parameters as `strength` says: 1 for every value, 2 for every pair.

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
    best_first = [(-len(each), at) for at, each in enumerate(held)]  # a heap of gains, some from before they fell
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
    """For each case of a test what it is marked with: nothing, ``full``, or that and ``exhaustive``."""
    thin = chosen(parameters, 1 if interpreted else 2, interpreted=interpreted)
    full = thin if interpreted else thin | chosen(parameters, 3)
    return [[] if at in thin else ["full"] if at in full else ["full", "exhaustive"] for at in range(len(parameters))]


def chosen(parameters: Sequence[dict[str, Any]], strength: int, *, interpreted: bool = False) -> set[int]:
    """Positions of the cases in a covering array.

    Where Triton's interpreter runs the kernels, cases whose metric has the kernels of another case's are left out.
    """
    same: set[str] = set()
    if interpreted:
        metrics = {repr(each.get("metric")) for each in parameters}
        same = {repr(metric) for metric, other in SAME_KERNELS.items() if repr(other) in metrics}
    stay = [at for at, each in enumerate(parameters) if repr(each.get("metric")) not in same]
    return {stay[at] for at in covering(_cases([parameters[at] for at in stay]), strength)}


def _cases(parameters: Sequence[dict[str, Any]]) -> list[Case]:
    """Parameters by name as positions: those of two cases are the same where the values look the same."""
    seen: dict[str, dict[Any, int]] = defaultdict(dict)
    return [
        tuple(seen[name].setdefault(_looks(value), len(seen[name])) for name, value in sorted(each.items()))
        for each in parameters
    ]


def _looks(value: Any) -> Any:
    """What two values share if they look the same: of arrays, which take long to print, the type, shape and ends."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.flat[:64].tobytes(), value.flat[-64:].tobytes()
    return repr(value)
