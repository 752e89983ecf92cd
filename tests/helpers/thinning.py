"""Which cases of a parametrized test the thin suite takes: those in which every two values meet once.

Most faults show for one value of one parameter or for a pair of two (Kuhn, Wallace and Gallo 2004). So of a test with
three parameters or more, a covering array stays in the thin suite: each value of each parameter meets each value of
each other one, as far as the full product lets them meet. All other cases get the marker ``full``.
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


def covering(cases: Sequence[Case]) -> list[int]:
    """Positions of cases that hold every pair of values that any case holds, chosen greedily, the same in every run.

    Of one parameter or two all cases are chosen: every two values meet in them once.

    >>> covering([(a, b, c) for a in range(2) for b in range(2) for c in range(2)])
    [0, 3, 5, 6]
    """
    if cases and len(cases[0]) < 3:
        return list(range(len(cases)))
    missing = {pair for case in cases for pair in _pairs(case)}
    holders = defaultdict(list)
    for at, case in enumerate(cases):
        for pair in _pairs(case):
            holders[pair].append(at)
    gain = [len(set(_pairs(case))) for case in cases]
    chosen = []
    while missing:
        best = max(range(len(cases)), key=lambda at: (gain[at], -at))
        chosen.append(best)
        for pair in set(_pairs(cases[best])) & missing:
            missing.discard(pair)
            for at in holders[pair]:
                gain[at] -= 1
    return sorted(chosen)


def _pairs(case: Case) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return list(itertools.combinations(enumerate(case), 2))


def mark_beyond_pairs(items: Sequence[pytest.Item]) -> None:
    """Give the marker ``full`` to the cases that the thin suite leaves out."""
    tests = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for each in tests.values():
        parameters = [item.callspec.params for item in each]
        left = beyond_pairs(parameters, interpreted=each[0].get_closest_marker("interpreter") is not None)
        for at in left:
            each[at].add_marker("full")


def beyond_pairs(parameters: Sequence[dict[str, Any]], *, interpreted: bool = False) -> list[int]:
    """Positions of the cases that the covering array leaves out.

    Where Triton's interpreter runs the kernels, a case whose metric has the kernels of another's is left out first.
    """
    same: set[str] = set()
    if interpreted:
        metrics = {repr(each.get("metric")) for each in parameters}
        same = {repr(metric) for metric, other in SAME_KERNELS.items() if repr(other) in metrics}
    stay = [at for at, each in enumerate(parameters) if repr(each.get("metric")) not in same]
    kept = {stay[at] for at in covering(_cases([parameters[at] for at in stay]))}
    return [at for at in range(len(parameters)) if at not in kept]


def _cases(parameters: Sequence[dict[str, Any]]) -> list[Case]:
    """Parameters by name as positions: those of two cases are the same where the values look the same."""
    seen: dict[str, dict[str, int]] = defaultdict(dict)
    return [
        tuple(seen[name].setdefault(repr(value), len(seen[name])) for name, value in sorted(each.items()))
        for each in parameters
    ]
