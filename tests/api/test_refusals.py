"""A refusal for lack of memory names a budget that is enough for the call, for every function and rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import gaussian
from tonari.api import tuning
from tonari.core.errors import BudgetExceeded

N, M = 1500, 200
POINTS, QUERIES = gaussian(N, 8), gaussian(M, 8, 1)
EACH = ("none", "where", "mask", "lists", "same", "other", "where+lists", "mask+same")
ONE = ("none", "where", "batch")


def rules_named(name: str) -> dict[str, Any]:
    rng, given = np.random.default_rng(0), dict[str, Any]()
    if "where" in name:
        given["where"] = rng.random(N) < 0.3
    if "mask" in name:
        given["where"] = rng.random((M, N)) < 0.02
    if "lists" in name:
        given["exclude"] = rng.integers(0, N, (M, 20))
    if "same" in name or "other" in name:
        given |= {"query_groups": rng.integers(0, 3, M), "point_groups": rng.integers(0, 3, N)}
        given["groups"] = "other" if "other" in name else "same"
    if name == "batch":
        given["batch"] = rng.integers(0, 3, N)
    return given


Call = Callable[[int], Any]
# For each function: its rules, and a function that makes a call with a budget from rules. Preparing an Index is not
# part of such a call.
VERBS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], Call]]] = {
    "search": (EACH, lambda rules: lambda memory: tonari.search(QUERIES, POINTS, 10, memory=memory, **rules)),
    "search by a tree": (
        EACH,
        lambda rules: lambda memory: tonari.search(QUERIES, POINTS, 10, method="kdtree", memory=memory, **rules),
    ),
    "radius_count": (
        EACH,
        lambda rules: lambda memory: tonari.radius_count(QUERIES, POINTS, 1.2, memory=memory, **rules),
    ),
    "radius_search": (
        EACH,
        lambda rules: lambda memory: tonari.radius_search(QUERIES, POINTS, 1.2, memory=memory, **rules),
    ),
    "radius_search, few": (
        EACH,
        lambda rules: (
            lambda memory: tonari.radius_search(QUERIES, POINTS, 1.2, max_neighbors=5, memory=memory, **rules)
        ),
    ),
    "radius_search, many": (
        EACH,
        lambda rules: (
            lambda memory: tonari.radius_search(QUERIES, POINTS, 1e9, max_neighbors=65, memory=memory, **rules)
        ),
    ),
    "knn_graph": (ONE, lambda rules: lambda memory: tonari.knn_graph(POINTS, 10, memory=memory, **rules)),
    "radius_graph": (ONE, lambda rules: lambda memory: tonari.radius_graph(POINTS, 1.2, memory=memory, **rules)),
    "radius_graph, many": (
        ONE,
        lambda rules: lambda memory: tonari.radius_graph(POINTS, 1e9, max_neighbors=65, memory=memory, **rules),
    ),
    "pairs": (ONE[:2], lambda rules: lambda memory: tonari.pairs(POINTS, 0.7, memory=memory, **rules)),
    "mutual_reachability_tree": (
        ("none",),
        lambda _rules: lambda memory: tonari.mutual_reachability_tree(POINTS, 5, memory=memory),
    ),
    "kth_distance": (("none",), lambda _rules: lambda memory: tonari.kth_distance(POINTS, 10, memory=memory)),
    "kth_distance by a tree": (
        ("none",),
        lambda _rules: lambda memory: tonari.kth_distance(POINTS, 10, method="kdtree", memory=memory),
    ),
    "kth_distance, weighted": (
        ("none",),
        lambda _rules: lambda memory: tonari.kth_distance(POINTS, 10, weights=np.full(8, 2.0), memory=memory),
    ),
    "Index": (("none",), lambda _rules: lambda memory: tonari.Index(POINTS, memory=memory)),
    "Index, copied": (("none",), lambda _rules: lambda memory: tonari.Index(POINTS, memory=memory, copy=True)),
}
CASES = [(verb, rule) for verb, (rules, _) in VERBS.items() for rule in rules]


def refusal(call: Callable[[], Any]) -> int | None:
    """Call, and return the first number that a refusal names; None if the call succeeds."""
    try:
        call()
    except BudgetExceeded as refused:
        message = str(refused)
    else:
        return None
    named = re.search(r"allow at least (\d+)", message)
    assert named, message
    return int(named[1])


@pytest.mark.parametrize(("verb", "rule"), CASES)
def test_the_first_number_is_enough(verb: str, rule: str) -> None:
    call = VERBS[verb][1](rules_named(rule))
    for memory in (1, 150_000, 4_000_000):
        named = refusal(lambda memory=memory: call(memory))  # type: ignore[misc]
        if named is not None:
            assert memory < named < 30_000_000
            call(named)


@pytest.mark.parametrize("method", ["auto", "exact", "kdtree"])
@pytest.mark.parametrize("held", [1500, 4000])
def test_values_that_come_in_blocks_name_what_is_enough(
    method: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "KTH_HELD", held)
    truth = tonari.kth_distance(POINTS, 10)
    for memory in (1, 150_000):
        named = refusal(lambda memory=memory: tonari.kth_distance(POINTS, 10, method=method, memory=memory))  # type: ignore[misc]
        assert named is not None
        assert memory < named < 30_000_000
        np.testing.assert_array_equal(tonari.kth_distance(POINTS, 10, method=method, memory=named), truth)


@pytest.mark.parametrize("rule", EACH)
@pytest.mark.parametrize("verb", ["search", "radius_count", "radius_search"])
def test_searches_of_an_index_name_what_is_enough_for_them(verb: str, rule: str) -> None:
    def call(memory: int) -> None:
        asked = 10 if verb == "search" else 1.2
        getattr(tonari.Index(POINTS, memory=memory), verb)(QUERIES, asked, **rules_named(rule))

    prepared = refusal(lambda: tonari.Index(POINTS, memory=1))
    assert prepared is not None
    named = refusal(lambda: call(prepared))
    if named is not None:
        call(named)


def test_what_a_search_of_copies_lacks_is_named_with_the_copies() -> None:
    points, mask = gaussian(20_000, 128), np.arange(20_000) % 2 == 0
    copied = points[mask].nbytes

    def search(memory: int) -> Any:
        return tonari.search(points[:1], points, 1, where=mask, memory=memory)

    least = refusal(lambda: search(copied + 1))
    assert least is not None
    assert least > copied + 1
    assert refusal(lambda: search(least)) is None
