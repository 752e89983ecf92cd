"""Rules applied during radius searches: the bits of lists of all points, filtered by NumPy."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.filter_checks import assert_equal, cut, excluded_of
from tests.helpers.kernels import WITHOUT_AMX
from tonari.core import _native
from tonari.core.problem import Problem
from tonari.core.results.radius_neighbors import Within
from tonari.filters.rules import Rules
from tonari.filters.shared import SharedMask
from tonari.methods.decision import Decision
from tonari.methods.registry import search_method
from tonari.metrics.reference import brute

M, N = 9, 300
RNG = np.random.default_rng(0)
MASK = RNG.random((M, N)) < 0.4
GROUPS: dict[str, Any] = {"query_groups": np.arange(M) % 4, "point_groups": RNG.integers(0, 3, N)}
PAIRS = np.unique(np.concatenate([RNG.integers(0, M * N, 500), np.arange(2 * N, 3 * N), [0, M * N - 1]]))
PAIRS = PAIRS[PAIRS // N != 5]  # one query excludes all points, another excludes none
RULES: dict[str, dict[str, Any]] = {
    "mask": {"mask": MASK},
    "bits": {"mask": np.packbits(MASK, axis=1, bitorder="little")},
    "shared": {"shared": SharedMask(MASK[0])},
    "same": GROUPS,
    "other": GROUPS | {"same": False},
    "excluded": {"excluded": excluded_of(PAIRS, M, N)},
    "own": {"own": True},
    "shared and others": GROUPS | {"shared": SharedMask(MASK[0]), "own": True},
    "all": GROUPS | {"same": False, "mask": MASK, "excluded": excluded_of(PAIRS, M, N), "own": True},
}


def every(rules: Rules, m: int, n: int) -> Any:
    """Return the allowed points by checking each pair."""
    return rules.allowed(np.arange(m)[:, None], np.arange(n)[None].repeat(m, 0))


@pytest.mark.parametrize("name", RULES)
def test_a_table_is_that_of_the_rules(name: str) -> None:
    rules = Rules(m=M, n=N, **RULES[name])
    rows, ids = np.array([8, 2, 2, 5]), np.flatnonzero(RNG.random(N) < 0.5)
    for part, m, n in ((rules, M, N), (rules.part(rows, None), 4, N), (rules.part(np.arange(M), ids), M, len(ids))):
        allowed = part.as_allowed()
        assert allowed is not None
        assert allowed.table(m, n).tolist() == every(part, m, n).tolist()
        some = np.array([3, 0, 3])
        assert allowed.of(some).of(np.array([1, 2])).table(2, n).tolist() == every(part, m, n)[[0, 3]].tolist()


def test_a_mask_that_would_be_copied_is_none() -> None:
    assert Rules(m=M, n=N, mask=np.asfortranarray(MASK)).as_allowed() is None
    assert Rules(m=M, n=N, mask=np.zeros((M, 2 * N), bool)[:, ::2]).as_allowed() is None


def plan_of(method: str, metric: str, points: Any) -> tuple[Any, Any, Any]:
    made = search_method(method, "cpu")
    n, d = points.shape
    plan = made.plan(Problem(n=n, m=M, d=d, k=1, dtype=points.dtype.name, query_dtype="float32", metric=metric))
    return made, made.prepare(points, plan), plan


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("maker", checks.HOSTILE)
@pytest.mark.parametrize(
    ("method", "metric"),
    [("kdtree", "euclidean"), ("kdtree", "linf"), ("exact", "euclidean"), ("exact", "inner_product"), ("exact", "l1")],
)
def test_the_bits_of_lists_that_are_cut(
    method: str, metric: str, maker: str, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Radii with no point, with ties at the radius, with many points, and with all points."""
    monkeypatch.setenv("TONARI_ISA", isa)
    points = checks.HOSTILE[maker](N, 3, 0)
    queries = points[:M].copy()
    made, prepared, plan = plan_of(method, metric, points)
    values = brute(queries, points, N, metric).distances
    descending = metric == "inner_product"
    for place, (name, rules) in itertools.product((0, 20, 150, N - 1), RULES.items()):
        limits = np.ascontiguousarray(values[:, place])
        if place == N - 1:
            limits[::2] = -np.inf if descending else np.inf
        whole = made.find_within(Within(queries, limits), prepared, plan)
        ours = Rules(m=M, n=N, **rules)
        allowed = ours.as_allowed()
        truth = cut(whole, every(ours, M, N))
        assert_equal(made.find_within(Within(queries, limits, allowed=allowed), prepared, plan), truth)
        counts = made.count_within(Within(queries, limits, allowed=allowed), prepared, plan)
        assert counts.tolist() == np.diff(truth.indptr).tolist(), name
        some = np.array([4, 1])  # so few queries that a tree copies no rules
        part = made.count_within(Within(queries[some], limits[some], allowed=allowed.of(some)), prepared, plan)
        assert part.tolist() == counts[some].tolist(), name


@pytest.mark.parametrize("method", ["kdtree", "exact"])
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(("m", "pairs"), [(300, 40), (60, 3)])
def test_many_points_within_the_radius(method: str, name: str, m: int, pairs: int) -> None:
    """More points are found than are checked together, in blocks of queries in another order.

    A tree copies rules for many queries, and for these it looks up excluded pairs in another table.
    """
    n = 6_000
    points, queries = checks.gaussian(n, 3), checks.gaussian(m, 3, seed=1)
    rng = np.random.default_rng(0)
    mask = rng.random((m, n)) < 0.5
    groups = {"query_groups": rng.integers(0, 5, m), "point_groups": rng.integers(0, 5, n)}
    rules: dict[str, Any] = {
        "mask": {"mask": mask},
        "bits": {"mask": np.packbits(mask, axis=1, bitorder="little")},
        "same": groups,
        "other": groups | {"same": False},
        "shared": {"shared": SharedMask(mask[0])},
        "excluded": {"excluded": excluded_of(rng.integers(0, m * n, pairs * m), m, n)},
        "own": {"own": True},
        "shared and others": groups | {"shared": SharedMask(mask[0]), "own": True},
        "all": groups | {"mask": mask, "excluded": excluded_of(rng.integers(0, m * n, pairs * m), m, n), "own": True},
    }[name]
    ours, limits = Rules(m=m, n=n, **rules), np.full(m, 1.5, np.float32)
    made, prepared, plan = plan_of(method, "euclidean", points)
    whole = made.find_within(Within(queries, limits), prepared, plan)
    assert np.diff(whole.indptr).max() > 1_100
    truth = cut(whole, every(ours, m, n))
    allowed = ours.as_allowed()
    assert_equal(made.find_within(Within(queries, limits, allowed=allowed), prepared, plan), truth)
    assert (
        made.count_within(Within(queries, limits, allowed=allowed), prepared, plan).tolist()
        == np.diff(truth.indptr).tolist()
    )


@pytest.mark.parametrize("isa", WITHOUT_AMX)
@pytest.mark.parametrize("n", [1_000, 1_029])
def test_rules_in_the_order_of_a_tree(n: int, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of masks and lists are copied for queries that meet many points; the last rows of a block are few."""
    monkeypatch.setenv("TONARI_ISA", isa)
    m, rng = 75, np.random.default_rng(0)
    points, queries = checks.gaussian(n, 3), checks.gaussian(m, 3, seed=1)
    mask = rng.random((m, n)) < 0.5
    odd = (mask * rng.integers(1, 256, (m, n))).astype(np.uint8).view(bool)  # every byte but 0 allows
    excluded = excluded_of(np.append(rng.integers(0, m * n, 20 * m), np.arange(3 * n, 4 * n)), m, n)
    groups: dict[str, Any] = {"query_groups": rng.integers(0, 3, m), "point_groups": rng.integers(0, 3, n)}
    bits = np.packbits(mask, axis=1, bitorder="little")
    made, prepared, plan = plan_of("kdtree", "euclidean", points)
    for limit in (0.7, 1.6):
        limits = np.full(m, limit, np.float32)
        limits[40] = -1
        whole = made.find_within(Within(queries, limits), prepared, plan)
        for name, rules in {
            "mask": {"mask": mask},
            "odd": {"mask": odd},
            "bits": {"mask": bits, "excluded": excluded},
            "grouped": groups | {"mask": bits},
            "excluded": {"excluded": excluded},
            "excluded and own": {"excluded": excluded, "own": True},
            "excluded and others": groups | {"excluded": excluded, "same": False},
        }.items():
            ours = Rules(m=m, n=n, **rules)
            allowed = ours.as_allowed()
            assert allowed is not None
            truth = cut(whole, every(dataclasses.replace(ours, mask=mask if "mask" in rules else None), m, n))
            assert_equal(made.find_within(Within(queries, limits, allowed=allowed), prepared, plan), truth)
            counts = made.count_within(Within(queries, limits, allowed=allowed), prepared, plan)
            assert counts.tolist() == np.diff(truth.indptr).tolist(), name
            some = rng.permutation(m)
            part = made.count_within(Within(queries[some], limits[some], allowed=allowed.of(some)), prepared, plan)
            assert part.tolist() == counts[some].tolist(), name


def test_methods_without_rules_refuse_them() -> None:
    bits = search_method("bits", "cpu")
    assert not bits.filters
    decision, rules = Decision(bits, None), Rules(m=M, n=N, own=True)
    request = Within(checks.gaussian(M, 3), np.ones(M, np.float32), allowed=rules.as_allowed())
    for call in (decision.find_within, decision.count_within):
        with pytest.raises(ValueError, match="method='bits' on cpu applies no rules within a radius"):
            call(request, None)


def test_queries_in_another_order_keep_their_rules() -> None:
    rules, order = Rules(m=M, n=N, **RULES["all"]), RNG.permutation(M)
    request = Within(checks.gaussian(M, 3), np.ones(M, np.float32), allowed=rules.as_allowed())
    allowed = request.in_order(order).in_order(np.arange(M)[::-1].copy()).allowed
    assert allowed is not None
    assert allowed.table(M, N).tolist() == every(rules, M, N)[order[::-1]].tolist()
