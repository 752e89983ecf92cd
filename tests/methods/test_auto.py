"""method="auto" uses a tree where it is faster, brute force elsewhere, and builds no tree in vain."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks, plans
from tests.helpers.checks import assert_same_neighbors
from tonari.core import _native
from tonari.core.method import SearchMethod, TreeMethod
from tonari.core.problem import Problem
from tonari.core.results.neighbors import Neighbors
from tonari.costs.formulas import MeanVisits
from tonari.costs.model import all_visits, brute_seconds, build_seconds, expected_visits, tree_seconds
from tonari.costs.rates import BRUTE, TREE
from tonari.exact.cuda.planning import plan_on_cuda
from tonari.kdtree.cpu import prepared
from tonari.kdtree.plan import TREE_METRICS, plan_tree, refusal
from tonari.methods import auto as choosing
from tonari.methods import tuning
from tonari.methods.decision import Decision
from tonari.methods.registry import method_for
from tonari.metrics.problem import make_problem

UNIFORM = np.random.default_rng(0).random((100_000, 3), dtype=np.float32)
QUERIES = np.random.default_rng(1).random((10_000, 3), dtype=np.float32)


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The faster method depends on the number of threads."""
    monkeypatch.setenv("TONARI_NUM_THREADS", "2")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of points of each tree that is built."""
    sizes: list[int] = []
    build = prepared.build

    def counting(points: Any, **given: Any) -> Any:
        sizes.append(len(points))
        return build(points, **given)

    monkeypatch.setattr(prepared, "build", counting)
    return sizes


@pytest.mark.parametrize("metric", TREE_METRICS)
def test_a_tree_for_many_points_in_3_dimensions(
    metric: str, built: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="tonari"):
        found = tonari.search(QUERIES, UNIFORM, 5, metric=metric)
    assert "auto takes method='kdtree'" in caplog.text
    assert built == [len(UNIFORM)]  # the tree that was probed answers the search; no sample is worthwhile
    some = Neighbors(*(np.ascontiguousarray(part[::100]) for part in found))
    assert_same_neighbors(some, tonari.search(QUERIES[::100], UNIFORM, 5, metric=metric, method="exact"))


def test_brute_force_in_27_dimensions(
    built: list[int], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow brute force is on this instruction set, the whole tree is not built to decide.
    monkeypatch.setattr(tuning, "CHEAP_BUILD_FACTOR", math.inf)
    points, queries = checks.gaussian(100_000, 27), checks.gaussian(10_000, 27, seed=1)
    with caplog.at_level(logging.INFO, logger="tonari"):
        tonari.search(queries, points, 10)
    assert "auto takes method='exact'" in caplog.text
    assert len(points) not in built  # a sample was enough


def test_what_lies_in_few_of_27_dimensions_gets_a_tree() -> None:
    turned = np.linalg.qr(np.random.default_rng(2).standard_normal((27, 27)))[0][:2].astype(np.float32)
    points = checks.gaussian(100_000, 2) @ turned
    assert tonari.knn_graph(points, 5).method == "kdtree"


def test_graphs_and_indexes_choose() -> None:
    assert tonari.knn_graph(UNIFORM, 5).method == "kdtree"
    assert tonari.Index(UNIFORM).method == "kdtree"
    assert tonari.Index(checks.gaussian(20_000, 27)).method == "exact"
    found = tonari.Index(UNIFORM).search(QUERIES[:7], 5)
    assert_same_neighbors(found, tonari.search(QUERIES[:7], UNIFORM, 5, method="exact"))


def test_an_index_builds_its_tree_once(built: list[int]) -> None:
    index = tonari.Index(UNIFORM)
    for k in (1, 10, 100):
        index.search(QUERIES[:50], k)
    assert built.count(len(UNIFORM)) == 1


NO_TREE: dict[str, Callable[[], Any]] = {
    "few points": lambda: tonari.search(QUERIES, UNIFORM[:100], 5),
    "few points of many dimensions": lambda: tonari.Index(checks.gaussian(2000, 13)),
    "few points and queries": lambda: tonari.search(QUERIES[:10], UNIFORM[:10], 5),
    "one query": lambda: tonari.search(QUERIES[:1], UNIFORM, 5),
    "a small graph": lambda: tonari.knn_graph(UNIFORM[:120], 5),
    "a small index": lambda: tonari.Index(UNIFORM[:120]).search(QUERIES, 5),
    "cosine": lambda: tonari.search(QUERIES, UNIFORM[:20_000], 5, metric="cosine"),
    "chi2": lambda: tonari.search(QUERIES, UNIFORM[:5_000], 5, metric="chi2"),
    "many dimensions": lambda: tonari.search(checks.gaussian(5000, 31), checks.gaussian(9000, 31), 5),
    "exact": lambda: tonari.search(QUERIES[:100], UNIFORM, 5, method="exact"),
    "a plan": lambda: tonari.search(QUERIES[:100], UNIFORM, 5, plan=tonari.plan(100_000, 100, 3, 5)),
}


@pytest.mark.parametrize("what", NO_TREE)
def test_no_tree_is_built_for(what: str, built: list[int]) -> None:
    NO_TREE[what]()
    assert not built


@pytest.mark.parametrize(("d", "considered"), [(29, True), (30, True), (31, False)])
def test_trees_are_considered_up_to_30_dimensions(d: int, considered: bool) -> None:
    settled = choosing.by_sizes(plans.problem(100_000, 100_000, d, 5), 100_000)
    assert isinstance(settled, choosing.Open) == considered
    assert considered or "beyond 30 dimensions" in settled.reason


def test_where_memory_has_no_room_for_a_tree_brute_force_keeps_the_budget(built: list[int]) -> None:
    points, queries = np.zeros((700_000, 10), np.float32), np.zeros((1000, 10), np.float32)
    points[:, :3], queries[:, :3] = np.tile(UNIFORM, (7, 1)), QUERIES[:1000]
    least = tonari.plan(700_000, 1000, 10, 5, method="kdtree", threads=2).total_bytes
    tight = {"memory": least - 1, "threads": 2}
    tonari.search(queries, points, 5, **tight)
    assert not built
    with pytest.raises(ValueError, match="cannot hold a tree"):
        tonari.search(queries, points, 5, **tight, method="kdtree")
    tonari.search(queries, points, 5, memory=least, threads=2)
    assert len(points) in built


@pytest.mark.skipif("avx512" not in _native.supported_isas(), reason="measured with AVX-512")
@pytest.mark.parametrize(
    ("n", "m", "d", "method"),
    [
        (1000, 100, 3, "kdtree"),
        (1000, 100, 8, "kdtree"),
        (300, 100, 2, "kdtree"),
        (300, 10, 2, "exact"),
        (1000, 10, 3, "exact"),
        (9000, 10, 3, "exact"),
    ],
)
def test_trees_of_few_points_are_taken_where_they_were_measured_to_be_sooner(
    n: int, m: int, d: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TONARI_ISA", "avx512")
    monkeypatch.setattr("tonari.costs.model._cores", str)  # not those of a CPU with AMX
    chosen = choosing.by_sizes(plans.problem(n, m, d, 5, threads=1), m)
    assert isinstance(chosen, Decision)
    assert chosen.plan.method == method


def test_a_plan_decides_over_auto(built: list[int]) -> None:
    plan = tonari.plan(1000, 10, 3, 5, method="kdtree")
    tonari.search(QUERIES[:10], UNIFORM[:1000], 5, plan=plan)
    assert built == [1000]


def test_growth_is_between_none_and_that_of_the_points() -> None:
    few = MeanVisits(2.0, 2.0, 32.0)
    assert choosing.grown(few, few, times=4, to=16) == few
    shrunk, exploded = MeanVisits(1.0, 1.0, 16.0), MeanVisits(100.0, 9.0, 1600.0)
    assert choosing.grown(few, shrunk, times=4, to=16) == shrunk
    most = choosing.grown(few, exploded, times=4, to=16)
    assert 100 < most.leaves < 1600
    assert most.points == most.leaves * 16
    assert few.leaves < choosing.grown(few, MeanVisits(3.0, 2.0, 48.0), times=4, to=16).leaves < most.leaves


@pytest.mark.parametrize("n", [1, 300, 10**6, 10**9])
@pytest.mark.parametrize("height", [0, 2, 14, 30])
@pytest.mark.parametrize("k", [1, 10, 300])
def test_expected_visits_of_any_number_of_dimensions(n: int, height: int, k: int) -> None:
    size = n / 2**height
    for d in (*range(1, 40), 100, 500, 900):
        width = min(1.0, k / n) ** (1.0 / d)
        touched = min(float(2**height), ((k / size) ** (1.0 / d) + 1.0 - width**2) ** d)
        assert expected_visits(n, d, k, height) == (touched, touched / 4 + height / 4, touched * size)
    for d in (1_025, 1_100, 1_500, 10**6):
        assert expected_visits(n, d, k, height).leaves == pytest.approx(2**height)


def test_expected_visits_are_those_of_evenly_spread_points() -> None:
    assert expected_visits(10**6, 30, 10, 14).leaves == 2**14
    assert expected_visits(64, 3, 10, 0).leaves == 1
    low = [expected_visits(10**6, d, 10, 14).leaves for d in (1, 2, 3, 5, 10)]
    assert low == sorted(low)
    assert low[0] < 3
    assert expected_visits(4096, 10, 4096, 6).leaves == pytest.approx(64)  # all points


@pytest.mark.parametrize("d", [2, 5, 8, 12])
def test_expected_visits_are_those_of_uniform_points(d: int) -> None:
    points, queries = (np.random.default_rng(d).random((rows, d), dtype=np.float32) for rows in (20_000, 300))
    plan = plan_tree(plans.problem(20_000, 300, d, 10), leaf=64)
    method = method_for("kdtree", "cpu")
    seen = method.visits(queries, method.prepare(points, plan, False), plan)
    expected = expected_visits(20_000, d, 10, plan.height)
    assert 0.7 < expected.leaves / seen.leaves < 1.4


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512", "amx", "neon", "cuda"])
def test_costs_grow_with_the_work(isa: str) -> None:
    def costs(n: int = 10**5, m: int = 10**4, d: int = 8, k: int = 10, leaves: float = 50.0) -> tuple[float, ...]:
        place = {"devices": ("cuda:0",), "free_bytes": 10**11} if isa == "cuda" else {"threads": 2}
        tree = plans.tree(n, m, d, k, **place)
        brute = brute_seconds(plans.problem(n, m, d, k, metric="l1"), "" if isa == "cuda" else isa, 2)
        seen = MeanVisits(leaves, leaves / 3, leaves * 60)
        return brute, build_seconds(tree), tree_seconds(tree, m, seen)

    base = costs()
    assert all(seconds > 0 for seconds in base)
    assert all(more >= less for more, less in zip(costs(n=10**6), base, strict=True))
    assert all(more >= less for more, less in zip(costs(m=10**5), base, strict=True))
    assert all(more >= less for more, less in zip(costs(k=50), base, strict=True))
    assert costs(leaves=500.0)[2] > base[2]


@pytest.mark.parametrize(
    ("n", "d", "k", "measured"),
    # graph-sift, graph-960 and graph-10m of benchmarks/results/exact_cuda.csv; sift-1m, gist-1m and clustered-10m of
    # nn_descent.csv: NVIDIA H100
    [(10**6, 128, 10, (0.54, 0.123)), (10**6, 960, 10, (3.22, 0.55)), (10**7, 96, 32, (45.3, 2.56))],
)
def test_costs_on_cuda_are_near_what_was_measured(n: int, d: int, k: int, measured: tuple[float, float]) -> None:
    given: dict[str, Any] = {
        "devices": ("cuda:0",),
        "free_bytes": 80 << 30,
        "host_points": False,
        "host_queries": False,
    }
    exact = plans.exact_cuda(n, n, d, k, self_join=True, **given)
    assert exact.seconds == pytest.approx(measured[0], rel=0.25)
    assert plans.descent(n, d, k, **given).seconds == pytest.approx(measured[1], rel=0.25)


class ExactStandIn(SearchMethod):
    """Brute force on a GPU of 80 GB, which does not exist."""

    name, device = "exact", "cuda"

    def refuses(self, problem: Problem) -> str | None:
        return None

    def plan(self, problem: Problem, **given: Any) -> Any:
        return plan_on_cuda(problem, free_bytes=80 * 10**9)

    def prepare(self, points: Any, plan: Any, progress: Any = None) -> Any:
        raise AssertionError("nothing is packed to choose")

    def search(self, queries: Any, prepared: Any, plan: Any, **given: Any) -> Any:
        raise AssertionError("nothing is searched to choose")


class TreeStandIn(ExactStandIn, TreeMethod):
    """A tree on that GPU, which has no contents and claims that a query visits this number of leaves."""

    name = "kdtree"

    def __init__(self, leaves: Callable[[int], float]) -> None:
        self.leaves = leaves
        self.prepared: list[int] = []

    def refuses(self, problem: Problem) -> str | None:
        return refusal(problem)

    def plan(self, problem: Problem, **given: Any) -> Any:
        return plan_tree(problem, free_bytes=80 * 10**9, **given)

    def prepare(self, points: Any, plan: Any, progress: Any = None) -> Any:
        self.prepared.append(len(points))
        return self

    def visits(self, queries: Any, prepared: Any, plan: Any) -> MeanVisits:
        leaves = self.leaves(plan.n)
        return MeanVisits(leaves, leaves / 4, leaves * plan.n / 2**plan.height)


def decided_on_cuda(
    n: int, m: int, d: int, k: int, leaves: Callable[[int], float], monkeypatch: pytest.MonkeyPatch, **asked: Any
) -> tuple[Any, list[int]]:
    """Return the decision for one search, or for repeated searches, and the sizes of the trees that were built to
    decide.
    """
    methods: dict[str, Any] = {"exact": ExactStandIn(), "kdtree": TreeStandIn(leaves)}
    for by_name in ("method_for", "search_method"):
        monkeypatch.setattr(choosing, by_name, lambda name, device: methods[name])
    rows = np.broadcast_to(np.float32(0), (max(n, m), d))
    asked_for = plans.problem(n, m, d, k, devices=("cuda:0",), host_points=False, host_queries=False)
    many = asked.pop("many", False)
    asked_for = dataclasses.replace(asked_for, **asked)
    made = choosing.choose(asked_for, rows[:n], rows[:m], as_if=rows[:m] if many else None)
    assert (made.prepared is not None) == (made.plan.method == "kdtree" and made.by_data)
    assert made.reason
    return made, methods["kdtree"].prepared


def chosen_on_cuda(*given: Any, **asked: Any) -> tuple[str, list[int]]:
    made, prepared = decided_on_cuda(*given, **asked)
    return made.plan.method, prepared


def test_a_tree_that_does_not_fit_whole_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TreeStandIn.plan

    def in_slabs(self: TreeStandIn, problem: Problem, **given: Any) -> Any:
        return dataclasses.replace(plan(self, problem), point_slab=problem.n // 2)

    monkeypatch.setattr(TreeStandIn, "plan", in_slabs)
    assert chosen_on_cuda(2_000_000, 10_000_000, 10, 10, lambda n: 100.0, monkeypatch) == ("exact", [])


def test_on_cuda_the_tree_is_taken_by_what_is_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    # A GPU builds so fast that trees of samples would cost as much as the whole tree.
    for sizes, many in (((2_000_000, 10_000_000, 15, 10), False), ((2_000_000, 10_000_000, 10, 10), True)):
        assert chosen_on_cuda(*sizes, lambda n: 100.0, monkeypatch, many=many) == ("kdtree", [2_000_000])
        assert chosen_on_cuda(*sizes, lambda n: n / 64, monkeypatch, many=many) == ("exact", [2_000_000])


def test_on_cuda_one_search_takes_a_tree_without_looking_where_uniform_points_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its visits are bounded: by eight times the number for which brute force is as fast, or by those of one query
    in that time.
    """
    sizes = (2_000_000, 100_000, 3, 10)
    made, prepared = decided_on_cuda(*sizes, lambda n: n / 64, monkeypatch)
    assert (made.plan.method, prepared, made.by_data) == ("kdtree", [], False)
    brute = brute_seconds(plans.problem(*sizes), "", 1)
    seen = expected_visits(2_000_000, 3, 10, made.plan.height)
    worth = 8 * brute / tree_seconds(made.plan, 100_000, seen) * (seen.leaves + seen.nodes)
    assert made.plan.most_visits == pytest.approx(worth, rel=0.01)
    alone = brute_seconds(plans.problem(2_000_000, 1000, 2, 10), "", 1) / 1e-6
    few, _ = decided_on_cuda(2_000_000, 1000, 2, 10, lambda n: n / 64, monkeypatch)
    assert few.plan.most_visits == pytest.approx(alone, rel=0.01)
    looked, prepared = decided_on_cuda(*sizes, lambda n: 5.0, monkeypatch, memory=10**9)
    assert (looked.plan.most_visits, prepared) == (0, [2_000_000])  # brute force does not fit in memory with the tree


def test_on_cuda_a_tree_of_fewer_nodes_than_the_bound_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made, prepared = decided_on_cuda(20_000, 100_000, 8, 10, lambda n: n / 64, monkeypatch)
    assert (made.plan.method, made.plan.most_visits, prepared) == ("kdtree", 0, [])
    more, _ = decided_on_cuda(200_000, 100_000, 8, 10, lambda n: n / 64, monkeypatch)
    assert 0 < more.plan.most_visits < 2 << more.plan.height


def test_on_cuda_a_tree_that_is_unlikely_to_win_is_only_tried_if_that_costs_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In 15 dimensions a tree of uniform points is much slower."""
    assert chosen_on_cuda(200_000, 100_000, 15, 10, lambda n: 5.0, monkeypatch) == ("exact", [])
    assert chosen_on_cuda(200_000, 2_000_000, 15, 10, lambda n: 5.0, monkeypatch) == ("kdtree", [200_000])
    # The kernels of a probe take seconds to compile, which the graph of so few points is not worth.
    assert chosen_on_cuda(200_000, 200_000, 20, 10, lambda n: 5.0, monkeypatch) == ("exact", [])


def test_on_the_cpu_samples_are_left_out_where_uniform_points_are_far_sooner(built: list[int]) -> None:
    for d, step in ((3, None), (15, tuning.SAMPLE)):
        choice = choosing.by_sizes(plans.problem(100_000, 1000, d, 10, threads=2), 1000)
        assert isinstance(choice, choosing.Open)
        assert choice.step == step
    rows = np.random.default_rng(2).random((100_000, 15), dtype=np.float32)
    tonari.search(rows[:1000], rows, 10, method="auto")
    assert 0 < max(built) <= len(rows) // tuning.SAMPLE + 1  # only trees of samples


@pytest.mark.parametrize(("share", "looks"), [(0.14, True), (0.31, False)])
def test_on_the_cpu_a_look_takes_a_small_share_of_brute_force(
    share: float, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing.Open, "looking", property(lambda choice: share * choice.by_force.seconds))
    choice = choosing.by_sizes(plans.problem(100_000, 1000, 15, 10, threads=2), 1000)
    assert isinstance(choice, choosing.Open) is looks
    assert looks or choice.reason == "measuring whether a tree is faster would take too long"


def test_on_the_cpu_a_tree_that_cannot_lose_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = UNIFORM[:20_000]
    choice = choosing.by_sizes(plans.problem(len(rows), 100, 3, 10, threads=2), 10**6)
    assert isinstance(choice, choosing.Open)
    probed: list[int] = []

    def visits(tree: TreeMethod, queries: Any, prepared: Any, plan: Any) -> tuple[float, ...]:
        probed.append(len(queries))
        return 1.0, 1.0, 16.0

    monkeypatch.setattr(type(choice.method), "visits", visits)
    everything = tree_seconds(choice.tree, choice.m, all_visits(len(rows), choice.tree.height))
    far_more = tuning.LOOK_PATIENCE * tree_seconds(choice.tree, choice.m, choice.seen_in_uniform)
    seen = min(everything, far_more)
    for brute, probes in ((1.01 * seen, 0), (0.99 * seen, 1)):
        probed.clear()
        hard = dataclasses.replace(choice, by_force=choice.by_force._replace(seconds=brute))
        decision = choosing._by_data(hard, rows, rows, once=True, progress=False)
        assert decision.plan.method == "kdtree"
        assert len(probed) == probes


def test_builds_on_several_cores() -> None:
    costs = TREE["avx2"]
    assert costs.build(16_000, 8, 8, 2) == costs.build(16_000, 8, 8, 1)  # one node, for one core
    for n, height, many in ((100_000, 11, 8), (10**6, 14, 64)):
        alone, two, all_cores = (costs.build(n, 8, height, cores) - costs.start for cores in (1, 2, many))
        assert all_cores < two < alone <= 2.2 * two
    # Passes over 100,000 points, three levels of eleven, are not divided among threads.
    assert costs.build(100_000, 8, 11, 8) - costs.start > 100_000 * 3 * costs.split


def test_points_of_few_columns_are_packed_twice() -> None:
    costs = BRUTE["avx2", "gemm"]
    near, far = (costs.answering(n, 1, 3, 10) - n * costs.pair for n in (10**6, 10**5))
    assert near > costs.packing(10**6, 3)  # the k nearest are within a fiftieth of the cube's width
    assert far < costs.packing(10**5, 3) / 2


@pytest.mark.parametrize(
    ("n", "m", "d", "k"),
    [
        (10_000, 1_000, 3, 10),
        (100_000, 1_000, 3, 10),
        (100, 10**6, 3, 10),
        (1000, 10**6, 13, 10),
        (10**6, 10**6, 31, 10),
        (10**6, 10**6, 3, 65),
    ],
)
def test_on_cuda_nothing_is_probed_for(n: int, m: int, d: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_on_cuda(n, m, d, k, lambda n: 1.0, monkeypatch) == ("exact", [])


@pytest.mark.parametrize(
    ("levels", "tried"), [(("int8", "float32"), True), (("bfloat16", "float32"), False), (("float32",), False)]
)
def test_a_tree_that_is_a_little_slower_is_tried_where_points_may_be_packed_twice(
    levels: tuple[str, ...], tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = method_for("exact", "cpu")
    plan = exact.plan

    def with_levels(self: Any, problem: Problem, **given: Any) -> Any:
        return dataclasses.replace(plan(problem, **given), precisions=levels)

    monkeypatch.setattr(type(exact), "plan", with_levels)
    monkeypatch.setattr(choosing.Open, "by_tree_of_uniform", property(lambda self: 1.1 * self.by_force.seconds))
    monkeypatch.setattr(choosing.Open, "looking", math.inf)
    problem = make_problem(10**6, 1000, 3, 10, dtype="float32", metric="euclidean", threads=2)
    assert isinstance(choosing.by_sizes(problem, 1000), choosing.Open) == tried


@pytest.mark.parametrize(
    ("isa", "dtype", "d", "kind"),
    [
        ("avx2", "float32", 12, "few"),
        ("avx2", "float32", 13, "gemm"),
        ("avx2", "uint8", 12, "gemm"),
        ("avx512", "float32", 12, "few"),
        ("amx", "float32", 12, "few"),
        ("neon", "float32", 12, "gemm"),
    ],
)
def test_costs_are_those_of_the_first_precision(isa: str, dtype: str, d: int, kind: str) -> None:
    problem = make_problem(10**6, 100, d, 10, dtype=dtype, metric="euclidean")
    assert brute_seconds(problem, isa, 2) == BRUTE[isa, kind].seconds(10**6, 100, d, 10, 2)


def test_a_leaf_beyond_the_cache_costs_a_miss() -> None:
    """Of two trees with equal visits, the one that no cache holds takes longer, by the time to fetch its leaves."""
    seen = MeanVisits(leaves=250.0, nodes=100.0, points=15_000.0)
    costs = TREE["avx2"]
    given: dict[str, Any] = {"double": False}
    small, large = (costs.search(1000, 10, 10, seen, 2, **given, tree_bytes=size) for size in (10**7, 10**9))
    fetched = dataclasses.replace(costs, miss=0.0).search(1000, 10, 10, seen, 2, **given, tree_bytes=10**9)
    assert small < fetched < large
    assert large - fetched == pytest.approx(1000 * 250 * costs.miss / 2, rel=0.03)
