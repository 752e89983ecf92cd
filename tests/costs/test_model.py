"""Expected seconds of plans: the rates that are used, the counts of a problem, and the visits of a query in a tree."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import pytest

from tonari.core.problem import Problem
from tonari.costs import model
from tonari.costs.model import (
    all_visits,
    arrival_seconds,
    begins_in_float32,
    bits_seconds,
    brute_pair_seconds,
    brute_seconds,
    brute_work,
    descent_seconds,
    direct_seconds,
    exact_in_int8,
    expected_visits,
    listed_bits_seconds,
    listed_seconds,
    packing_seconds,
    screening_seconds,
    tree_work,
)
from tonari.costs.rates import (
    BITS,
    BRUTE,
    CARD,
    DESCENT,
    DIRECT,
    ESTIMATED,
    LISTED_BITS,
    LOOK_BYTE,
    READ_RATE,
    SCREEN_START,
    SCREEN_START_UNPACKED,
    SHARED,
    TREE,
)
from tonari.metrics.problem import make_problem

ON_CPU = make_problem(1000, 10, 64, 5, dtype="float32", metric="euclidean")


def problem(**given: Any) -> Problem:
    return dataclasses.replace(ON_CPU, **given)


def test_products_are_by_the_form_of_the_metric_and_the_columns() -> None:
    sizes = 1000, 10, 64, 5
    assert brute_seconds(ON_CPU, "avx2", 2) == BRUTE["avx2", "gemm"].seconds(*sizes, 2)
    assert brute_seconds(problem(metric="l1"), "avx2", 2) == BRUTE["avx2", "elementwise"].seconds(*sizes, 2)
    assert brute_seconds(problem(d=4), "avx2", 1) == BRUTE["avx2", "few"].seconds(1000, 10, 4, 5, 1)
    assert brute_seconds(problem(d=4), "generic", 1) == BRUTE["generic", "gemm"].seconds(1000, 10, 4, 5, 1)
    assert brute_seconds(problem(d=4, metric="l1"), "avx2", 1) == BRUTE["avx2", "elementwise"].seconds(
        1000, 10, 4, 5, 1
    )
    assert brute_seconds(ON_CPU, "", 1) == BRUTE["cuda", "gemm"].seconds(*sizes, 1)
    assert brute_seconds(ON_CPU, "avx2", 1, shared=True) == SHARED * brute_seconds(ON_CPU, "avx2", 1)
    assert brute_pair_seconds(64) == BRUTE["cuda", "gemm"].pair + 64 * BRUTE["cuda", "gemm"].pair_value


@pytest.mark.parametrize(
    ("metric", "dtype", "exact"),
    [
        ("euclidean", "uint8", True),
        ("euclidean", "int8", True),
        ("euclidean", "float16", False),
        ("cosine", "uint8", False),
    ],
)
def test_integers_are_exact_in_int8_unless_they_are_divided(metric: str, dtype: str, exact: bool) -> None:
    assert exact_in_int8(metric, dtype) is exact
    assert begins_in_float32(metric, "avx2", dtype, 12) is not exact
    assert not begins_in_float32(metric, "avx2", dtype, 13)
    assert not begins_in_float32(metric, "generic", dtype, 2)  # has no int8


def test_packing_is_counted_unless_points_are_prepared() -> None:
    costs = BRUTE["avx2", "gemm"]
    packing = costs.packing(1000, 64)
    assert packing_seconds(ON_CPU, "avx2", 1000) == packing > 0
    works = [brute_work(ON_CPU, "avx2", read_bytes=0, prepared=prepared) for prepared in (True, False)]
    assert works == [costs.answering(1000, 10, 64, 5), costs.answering(1000, 10, 64, 5) + packing]
    assert brute_work(ON_CPU, "avx2", read_bytes=10**12, prepared=True) == 10**12 / READ_RATE
    assert [screening_seconds(ON_CPU, "avx2", prepared=prepared) for prepared in (True, False)] == [
        SCREEN_START + works[0],
        SCREEN_START_UNPACKED + works[1],
    ]


def test_bits_are_packed_byte_by_byte_and_compared_pair_by_pair() -> None:
    rates = BITS["avx2"]
    comparing = 1000 * 10 * (rates.pair + 64 * rates.pair_byte)
    assert bits_seconds(1000, 10, 64, "avx2", prepared=True) == comparing
    assert bits_seconds(1000, 10, 64, "avx2", prepared=False) == pytest.approx(comparing + 64_000 * rates.byte)


@pytest.mark.parametrize(
    ("isa", "rates"), [("generic", "generic"), ("neon", "generic"), ("avx2", "avx2"), ("amx", "avx2")]
)
def test_listed_pairs_cost_by_their_number(isa: str, rates: str) -> None:
    costs = LISTED_BITS[rates]
    assert listed_bits_seconds(3, 70, 64, isa) == 3 * costs.query + 70 * (costs.pair + 64 * costs.value)
    costs = DIRECT[isa]
    assert listed_seconds(3, 70, 64, isa) == 3 * costs.query + 70 * (costs.pair + 64 * costs.value)


@pytest.mark.parametrize(
    ("given", "estimated"),
    [
        ({}, True),
        ({"metric": "sqeuclidean"}, True),
        ({"metric": "l1"}, False),
        ({"dtype": "float64"}, False),
        ({"query_dtype": "float64"}, False),
        ({"k": 500}, True),
        ({"k": 501}, False),
    ],
)
def test_squares_of_float32_are_estimated_first(given: dict[str, Any], estimated: bool) -> None:
    asked = problem(**given)
    costs = (ESTIMATED if estimated else DIRECT)["avx2"]
    assert direct_seconds(asked, "avx2") == costs.seconds(1000, 10, 64, asked.k)


def test_what_arrives_is_looked_at_or_copied() -> None:
    points, queries = 1000 * 64 * 4, 10 * 64 * 4
    assert arrival_seconds(ON_CPU) == LOOK_BYTE * points
    assert arrival_seconds(problem(dtype="uint8")) == LOOK_BYTE * points / 4
    one, two = ("cuda:0",), ("cuda:0", "cuda:1")
    assert arrival_seconds(problem(devices=one)) == (points + queries) / CARD.link
    assert arrival_seconds(problem(devices=one, query_dtype="float64")) == (points + 2 * queries) / CARD.link
    assert arrival_seconds(problem(devices=one, host_points=False)) == queries / CARD.link
    assert arrival_seconds(problem(devices=one, host_points=False, host_queries=False)) == 0
    assert arrival_seconds(problem(devices=two)) == (points + queries) / CARD.link_of_several
    there = {"devices": two, "host_points": False, "host_queries": False}
    assert arrival_seconds(problem(**there)) == (points + queries) / 2 / CARD.peer
    assert arrival_seconds(problem(devices=one, m=1000, self_join=True)) == points / CARD.link


def test_a_tree_is_built_unless_it_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "supported_isas", lambda: ("generic", "avx2", "avx512"))
    for isa in ("generic", "avx2", "avx512"):
        prepared, built = (tree_work(ON_CPU, isa, 5, 4, prepared=each) for each in (True, False))
        assert built - prepared == pytest.approx(TREE[isa].build(1000, 64, 5, 1))
        assert tree_work(ON_CPU, isa, 5, 8, prepared=True) > prepared  # float64


@pytest.mark.parametrize(("isas", "key"), [(("avx2", "avx512"), "avx512"), (("avx2", "avx512", "amx"), "amx")])
def test_cores_with_amx_have_trees_of_their_own_rates(
    isas: tuple[str, ...], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "supported_isas", lambda: isas)
    plan: Any = SimpleNamespace(isa="avx512")
    assert model.least_build_seconds(plan) == TREE[key].start
    assert model.least_build_seconds(SimpleNamespace(isa="avx2")) == TREE["avx2"].start  # type: ignore[arg-type]
    assert model.least_build_seconds(SimpleNamespace(isa="")) == TREE["cuda"].start  # type: ignore[arg-type]


def test_trees_of_a_plan() -> None:
    seen = expected_visits(10_000, 3, 5, 7)
    plan = SimpleNamespace(
        isa="avx2", threads=4, devices=(), n=10_000, d=3, k=5, height=7, held="float32", packed_bytes=9
    )
    costs = TREE["avx2"]
    assert model.build_seconds(plan) == costs.build(10_000, 3, 7, 4)
    assert model.tree_seconds(plan, 20, seen) == costs.search(20, 3, 5, seen, 4, double=False, tree_bytes=9)
    on_cuda = SimpleNamespace(
        **vars(plan) | {"isa": "", "threads": 0, "devices": ("cuda:0", "cuda:1"), "held": "float64"}
    )
    costs = TREE["cuda"]
    assert model.build_seconds(on_cuda) == costs.build(10_000, 3, 7, 1)  # one tree for each device
    assert model.tree_seconds(on_cuda, 20, seen) == costs.search(20, 3, 5, seen, 2, double=True, tree_bytes=9)


@pytest.mark.parametrize(("device", "update"), list(DESCENT))
def test_graphs_by_nn_descent(device: str, update: str) -> None:
    plan = SimpleNamespace(device=device, update=update, n=1000, d=8, list_size=20, threads=0)
    assert descent_seconds(plan) == DESCENT[device, update].seconds(1000, 8, 20, 1)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 15, 100, 5000])
@pytest.mark.parametrize("height", [0, 3, 10])
@pytest.mark.parametrize("k", [1, 10, 4096])
def test_visits_are_of_leaves_that_exist(d: int, height: int, k: int) -> None:
    n = 1 << 12
    seen = expected_visits(n, d, k, height)
    leaves = 1 << height
    assert 1 <= seen.leaves <= leaves
    assert seen.points == pytest.approx(seen.leaves * n / leaves)
    assert seen.nodes == seen.leaves / 4 + height / 4
    if k == n:
        assert seen.leaves == pytest.approx(leaves)  # a root and its power are rounded
    assert seen.leaves <= expected_visits(n, d + 1, k, height).leaves + 1e-9
    assert seen.leaves <= expected_visits(n, d, min(n, 2 * k), height).leaves + 1e-9


def test_a_line_is_visited_where_the_ball_is() -> None:
    n, k, height = 1 << 20, 64, 15
    size = n >> height
    assert expected_visits(n, 1, k, height).leaves == pytest.approx(k / size + 1, abs=1e-6)


def test_all_visits_are_of_all_leaves_and_the_nodes_above() -> None:
    for height in range(8):
        leaves = 1 << height
        assert all_visits(1000, height) == (leaves, math.ceil(leaves / 15), 1000)
