"""Which cases of a parametrized test the thin suite takes: those in which every two values meet once.

Most faults show for one value of one parameter or for a pair of two (Kuhn, Wallace and Gallo 2004). So of a test with
three parameters or more, a covering array stays in the thin suite: each value of each parameter meets each value of
each other one, as far as the full product lets them meet. Where Triton's interpreter runs the kernels, a case takes a
thousand times as long as compiled code does: there each value of each parameter stays once. All other cases get the
marker ``full``, and there ``exhaustive``, too: they run where there is a card.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

# Parameters of a case, by the position of each value in its list.
Case = tuple[int, ...]

# Metrics that take another one's kernels on a GPU: for the interpreter one of each class is enough.
SAME_KERNELS = {"sqeuclidean": "euclidean", "correlation": "cosine"}


def covering(cases: Sequence[Case], strength: int = 2) -> list[int]:
    """Positions of cases that hold all values that any case holds together, chosen greedily, the same in every run.

    Together are as many values of different parameters as `strength` says: 2 for every pair, 1 for every value.

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
    missing, gain, chosen = set(holders), [len(each) for each in held], []
    while missing:
        best = max(range(len(cases)), key=lambda at: (gain[at], -at))
        chosen.append(best)
        for values in held[best] & missing:
            missing.discard(values)
            for at in holders[values]:
                gain[at] -= 1
    return sorted(chosen)


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
    full = set(beyond_pairs(parameters, interpreted=interpreted))
    markers = ["full", "exhaustive"] if interpreted else ["full"]
    return [markers if at in full else [] for at in range(len(parameters))]


def beyond_pairs(parameters: Sequence[dict[str, Any]], *, interpreted: bool = False) -> list[int]:
    """Positions of the cases that the covering array leaves out.

    Where Triton's interpreter runs the kernels, cases whose metric has the kernels of another case's are left out too.
    """
    same: set[str] = set()
    if interpreted:
        metrics = {repr(each.get("metric")) for each in parameters}
        same = {repr(metric) for metric, other in SAME_KERNELS.items() if repr(other) in metrics}
    stay = [at for at, each in enumerate(parameters) if repr(each.get("metric")) not in same]
    chosen = covering(_cases([parameters[at] for at in stay]), strength=1 if interpreted else 2)
    kept = {stay[at] for at in chosen}
    return [at for at in range(len(parameters)) if at not in kept]


def _cases(parameters: Sequence[dict[str, Any]]) -> list[Case]:
    """Parameters by name as positions: those of two cases are the same where the values look the same."""
    seen: dict[str, dict[str, int]] = defaultdict(dict)
    return [
        tuple(seen[name].setdefault(repr(value), len(seen[name])) for name, value in sorted(each.items()))
        for each in parameters
    ]
