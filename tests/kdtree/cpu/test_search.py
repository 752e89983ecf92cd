"""Searches by a tree on the CPU, compared with the plain float64 definition bit for bit, and their visits."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks, plans
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors, check_interrupt
from tests.helpers.trees import ISAS, WAYS, searched, tree_of, ways
from tonari.core import _native
from tonari.core.results.neighbors import Neighbors
from tonari.kdtree.cpu.search import Visits, search_tree
from tonari.kdtree.cpu.tree import WIDTH, Tree, boxes_above, room_for
from tonari.kdtree.plan import TREE_METRICS
from tonari.kdtree.reference import visits_reference
from tonari.kdtree.traversal import TRAVERSALS
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]

METRICS = list(TREE_METRICS)


def check(
    queries: Array, points: Array, k: int, metric: str = "euclidean", *, leaf: int = 8, self_ids: Any = None
) -> None:
    """Check that every instruction set finds the answer of the definition, by each traversal."""
    truth = brute(queries, points, k, metric, self_ids=self_ids)
    tree = tree_of(points, leaf=leaf, double=truth.distances.dtype == np.float64)
    seen = set()
    for isa, way in itertools.product(ISAS, ways(metric, tree.rows.dtype)):
        found, visits = searched(queries, points, tree, k, metric, self_ids=self_ids, isa=isa, **way)
        assert_same_neighbors(found, truth, metric=metric)
        seen.add(dataclasses.astuple(visits))
    assert len(seen) == 1  # the same leaves everywhere


def grid(n: int, d: int, seed: int = 0) -> Array:
    """Make whole numbers from a small range, with many ties between points and between boxes."""
    return np.random.default_rng(seed).integers(0, 3, (n, d)).astype(np.float32)


def line(n: int, d: int, seed: int = 0) -> Array:
    """Make points on a line, in random order."""
    return (np.random.default_rng(seed).permutation(n)[:, None] * np.linspace(-1, 1, d)).astype(np.float32)


def made(maker: str, n: int, d: int, seed: int = 0) -> Array:
    return {"grid": grid, "line": line, **HOSTILE}[maker](n, d, seed)


MAKERS = ["grid", "line", *HOSTILE]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("d", [1, 3, 10, 17])
def test_hostile_data(metric: str, maker: str, d: int) -> None:
    points = made(maker, 500, d)
    queries = np.concatenate([points[:12], made(maker, 12, d, 1)])
    for k in (1, 17):
        check(queries, points, k, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", range(1, 34))
def test_every_number_of_dimensions(metric: str, d: int) -> None:
    for points in (checks.gaussian(130, d), grid(130, d), checks.gaussian(130, d, 2, np.float64)):
        check(points[:9], points, 5, metric)


@pytest.mark.parametrize("maker", ["gaussian", "grid", "duplicates", "all_equal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_size_of_list(maker: str, dtype: npt.DTypeLike) -> None:
    points = made(maker, 600, 3).astype(dtype)
    whole = brute(points[:5], points, 600)
    tree = tree_of(points)
    for k in (*range(1, 36), 63, 64, 65, 255, 256, 257, 599, 600):
        # A list of all points, cut: the order is total, so this is the truth for every k.
        truth = Neighbors(*(np.ascontiguousarray(part[:, :k]) for part in whole))
        for isa, way in itertools.product(ISAS, ways("euclidean", dtype)):
            assert_same_neighbors(searched(points[:5], points, tree, k, isa=isa, **way)[0], truth)


@pytest.mark.parametrize("n", [1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 81, 129, 257])
def test_numbers_of_points_and_every_height(n: int) -> None:
    points, queries = grid(n, 2), np.concatenate([grid(3, 2, 1), checks.gaussian(1, 2) * 100])
    for k in {1, (n + 1) // 2, n}:
        truth = brute(queries, points, k)
        for height in range(n.bit_length()):
            tree = tree_of(points, height=height)
            for isa, way in itertools.product(ISAS, WAYS):
                assert_same_neighbors(searched(queries, points, tree, k, isa=isa, **way)[0], truth)


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 64])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_blocks_and_order_change_nothing(m: int, threads: int) -> None:
    points, queries = checks.gaussian(700, 4), checks.gaussian(m, 4, 1)
    truth, tree = brute(queries, points, 9), tree_of(points)
    seen = set()
    for block, sort, way in itertools.product((1, 7, 512), (True, False), WAYS):
        found, visits = searched(queries, points, tree, 9, threads=threads, query_block=block, sort=sort, **way)
        assert_same_neighbors(found, truth)
        seen.add(dataclasses.astuple(visits))
    assert len(seen) == 1


@pytest.mark.parametrize("query_dtype", DTYPES)
@pytest.mark.parametrize("point_dtype", DTYPES)
def test_every_pair_of_dtypes(query_dtype: str, point_dtype: str) -> None:
    def rows(n: int, dtype: str, seed: int) -> Array:
        values = np.random.default_rng(seed).normal(0, 30, (n, 6))
        return np.clip(np.abs(values) if dtype == "uint8" else values, -128, 127).astype(dtype)

    for metric in METRICS:
        check(rows(9, query_dtype, 1), rows(300, point_dtype, 2), 12, metric)


def test_a_tree_of_float64_answers_float32_too() -> None:
    points, queries = checks.offset_1e4(400, 5), checks.offset_1e4(20, 5, 1)
    for metric in METRICS:
        found, _ = searched(queries, points, tree_of(points, double=True), 7, metric)
        assert_same_neighbors(found, brute(queries, points, 7, metric), metric=metric)


def test_a_tree_of_float32_refuses_float64() -> None:
    points = checks.gaussian(50, 3)
    with pytest.raises(ValueError, match="float32 cannot answer in float64"):
        searched(points[:2].astype(np.float64), points, tree_of(points), 1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", ["gaussian", "grid", "all_equal", "duplicates", "tight_far_clusters"])
def test_self_is_left_out_by_its_number(metric: str, maker: str) -> None:
    points = made(maker, 260, 4)
    ids = np.arange(260, dtype=np.int64)
    for k in (1, 8, 259):
        check(points, points, k, metric, self_ids=ids)
    some = np.random.default_rng(3).permutation(260)[:40].astype(np.int64)
    check(np.ascontiguousarray(points[some]), points, 8, metric, self_ids=some)


EXTREMES: dict[str, Array] = {
    "1e6 away": checks.offset(400, 4, by=1e6),
    "1e15 away": checks.offset(400, 4, by=1e15, dtype=np.float64),
    "1e30": (checks.gaussian(400, 4) * np.float32(1e30)),
    "1e-30": (checks.gaussian(400, 4) * np.float32(1e-30)),
    "1e19, where squares overflow": (checks.gaussian(400, 4) * np.float32(1.2e19)),
    "1e-19, where squares underflow": (checks.gaussian(400, 4) * np.float32(1e-19)),
    "1e-22, where squares are subnormal": (checks.gaussian(400, 4) * np.float32(1e-22)),
    "float32's largest": np.random.default_rng(0).choice(
        np.array([-1, -0.5, 0, 0.5, 1], np.float32) * np.finfo(np.float32).max, (400, 4)
    ),
    "all magnitudes": np.ldexp(checks.gaussian(400, 4), np.random.default_rng(1).integers(-148, 126, (400, 1))).astype(
        np.float32
    ),
    "subnormal": checks.subnormal(400, 4),
    "float64's smallest": np.random.default_rng(2).integers(-9, 9, (400, 4)) * 5e-324,
    "1e150": checks.gaussian(400, 4, 0, np.float64) * 1e149,
    "all of float64": np.ldexp(
        checks.gaussian(400, 4, 0, np.float64), np.random.default_rng(3).integers(-1074, 490, (400, 1))
    ),
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("case", EXTREMES)
def test_ends_of_the_range(metric: str, case: str) -> None:
    points = EXTREMES[case]
    queries = np.concatenate([points[:20], points[:5] * points.dtype.type(0.5), np.zeros((1, 4), points.dtype)])
    for k in (1, 10, 400):
        check(queries, points, k, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("power", [-480, -496, -510, -524, -530, -537, -545, -600, -900, -1040])
def test_squares_that_underflow_float64(metric: str, power: int) -> None:
    points = np.ldexp(checks.gaussian(300, 18, 4, np.float64), power)
    check(points[:8], points, 10, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_queries_far_outside(metric: str) -> None:
    points = checks.gaussian(400, 5)
    far = checks.gaussian(9, 5, 1, np.float64) * 10.0 ** np.arange(0, 36, 4)[:, None]
    check(far.astype(np.float32), points, 6, metric)
    check(checks.gaussian(9, 5, 1, np.float64) * 10.0 ** np.arange(0, 144, 16)[:, None], points, 6, metric)


def test_neighbours_at_the_very_threshold() -> None:
    # Values that round to the same float32 so that the index decides, and values just above: many of them per query.
    rng = np.random.default_rng(5)
    for d in (1, 2, 3, 8, 16, 33):
        unit = rng.standard_normal((900, d))
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        points = (unit * (1 + rng.integers(-2, 3, (900, 1)) * 2.0**-24)).astype(np.float32)
        for metric in METRICS:
            origin = np.zeros((1, d), np.float32)
            check(origin, points, 450, metric)
            # Sums of a float64 tree are too exact to cover the rounding of returned values.
            found, _ = searched(origin, points, tree_of(points, double=True), 450, metric)
            assert_same_neighbors(found, brute(origin, points, 450, metric), metric=metric)


def any_tree(points: Array, height: int, leaf_of: Array) -> Tree:
    """Make a tree with any assignment of points to leaves, as if splits were taken from a sample."""
    leaves = 1 << height
    ids = np.argsort(leaf_of, kind="stable")
    begins = np.searchsorted(leaf_of[ids], np.arange(leaves + 1))
    capacity, d = room_for(begins), points.shape[1]
    rows = np.full((leaves, d, capacity), np.inf, points.dtype)
    boxes = np.full((-(-leaves // WIDTH), d, 2, WIDTH), np.inf, points.dtype)
    for leaf in range(leaves):
        own = points[ids[begins[leaf] : begins[leaf + 1]]]
        if len(own):
            rows[leaf, :, : len(own)] = own.T
            boxes[leaf // WIDTH, :, 0, leaf % WIDTH] = own.min(axis=0)
            boxes[leaf // WIDTH, :, 1, leaf % WIDTH] = own.max(axis=0)
    return Tree(
        n=len(points),
        d=d,
        height=height,
        capacity=capacity,
        begins=begins.astype(np.int64),
        ids=ids.astype(np.int32),
        rows=rows,
        boxes=boxes_above(boxes),
        split_dimensions=np.zeros(leaves - 1, np.int32),
        split_values=np.zeros(leaves - 1, points.dtype),
    )


@pytest.mark.parametrize("height", [1, 4, 6, 9])
@pytest.mark.parametrize("scale", [1.0, 3e38])
def test_leaves_of_any_size_and_empty_ones(height: int, scale: float) -> None:
    rng = np.random.default_rng(height)
    points = (rng.uniform(-1, 1, (300, 3)) * scale).astype(np.float32)
    # Half of the leaves are empty, in runs that leave whole nodes without a child; one leaf is far larger than the
    # others.
    leaf_of = rng.integers(0, 1 << height, 300) // 2
    leaf_of[rng.random(300) < 0.4] = 0
    tree = any_tree(points, height, leaf_of)
    for metric in METRICS:
        for k in (1, 9, 300):
            truth = brute(points[:20], points, k, metric)
            for isa, way in itertools.product(ISAS, ways(metric, points.dtype)):
                found, visits = searched(points[:20], points, tree, k, metric, isa=isa, **way)
                assert_same_neighbors(found, truth, metric=metric)
                assert visits.leaves <= 20 * len(np.unique(leaf_of))


@cache
def visit_case(maker: str, dtype: str, metric: str) -> tuple[Array, Tree, list[tuple[list[int], int]]]:
    points = made(maker, 900, 4).astype(dtype)
    tree = tree_of(points, leaf=3)
    assert len(tree.boxes) == 3
    queries = np.concatenate([points[:3], made(maker, 3, 4, 1).astype(dtype)])
    return queries, tree, [visits_reference(tree, query, 5, metric) for query in queries]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("maker", ["gaussian", "grid", "duplicates", "tight_far_clusters", "subnormal", "huge"])
def test_visits_are_those_of_the_recursion(isa: str, metric: str, dtype: str, maker: str) -> None:
    queries, tree, truth = visit_case(maker, dtype, metric)
    points = np.empty((tree.n, tree.d), dtype)  # only its type matters
    sizes = np.diff(tree.begins)
    for way, (query, (leaves, nodes)) in itertools.product(ways(metric, dtype), zip(queries, truth, strict=True)):
        _, visits = searched(query[None], points, tree, 5, metric, isa=isa, **way)
        assert visits == Visits(len(leaves), nodes, int(sizes[leaves].sum()))


def test_wide_indices() -> None:
    points = checks.gaussian(300, 3)
    tree = tree_of(points)
    wide = dataclasses.replace(tree, ids=tree.ids + np.int64(2**33))
    truth = brute(points[:9], points, 6)
    for way in WAYS:
        found, _ = searched(points[:9], points, wide, 6, **way)
        assert found.indices.dtype == np.int64
        assert np.array_equal(found.indices - 2**33, truth.indices)
        assert np.array_equal(found.distances, truth.distances)


def test_read_only_arrays_are_enough() -> None:
    points, queries = checks.gaussian(300, 3), checks.gaussian(20, 3, 1)
    tree = tree_of(points)
    ids = np.arange(20, dtype=np.int64)
    for array in (points, queries, ids, tree.ids, tree.rows, tree.begins, tree.split_dimensions, tree.split_values):
        array.flags.writeable = False
    for level in tree.boxes:
        level.flags.writeable = False
    for way in WAYS:
        found, _ = searched(queries, points, tree, 5, self_ids=ids, **way)
        assert_same_neighbors(found, brute(queries, points, 5, self_ids=ids))


def native_search(tree: Tree, queries: Array, k: int, order: Any = None) -> tuple[_native.TreeSearch, Neighbors]:
    found = Neighbors(np.full((len(queries), k), np.nan, np.float32), np.full((len(queries), k), -7, np.int32))
    search = _native.TreeSearch(tree.native, ISAS[-1], "euclidean", k, queries, order, None, *found)
    return search, found


def test_only_the_rows_asked_for_are_written() -> None:
    points = checks.gaussian(300, 3)
    order = np.random.default_rng(0).permutation(20)
    search, found = native_search(tree_of(points), points[:20], 4, order)
    truth = brute(points[:20], points, 4)
    assert search.run(5, 11, 1 << 40)[0] == 11
    rows = np.sort(order[5:11])
    assert np.array_equal(found.distances[rows], truth.distances[rows])
    assert np.array_equal(found.indices[rows], truth.indices[rows])
    others = np.setdiff1d(np.arange(20), rows)
    assert np.isnan(found.distances[others]).all()
    assert (found.indices[others] == -7).all()


def test_a_budget_stops_between_queries() -> None:
    points = checks.gaussian(300, 3)
    search, found = native_search(tree_of(points), points[:20], 4)
    stopped, *visits = search.run(0, 20, 1)
    assert stopped == 1
    assert min(visits) >= 1
    begin = stopped
    while begin < 20:
        begin = search.run(begin, 20, 1)[0]
    assert_same_neighbors(found, brute(points[:20], points, 4))


def test_types_that_no_tree_has_are_refused() -> None:
    points = checks.gaussian(50, 3)
    tree = tree_of(points)
    for name, dtype in (("rows", np.float16), ("ids", np.uint32)):
        with pytest.raises(TypeError, match=f"{name} are not"):
            _ = dataclasses.replace(tree, **{name: getattr(tree, name).astype(dtype)}).native
    found = Neighbors(np.empty((5, 1), np.float16), np.empty((5, 1), np.int32))
    with pytest.raises(TypeError, match="distances are not"):
        _native.TreeSearch(tree.native, ISAS[0], "euclidean", 1, points[:5], None, None, *found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_leaves_follow_the_splits(dtype: npt.DTypeLike) -> None:
    points, queries = grid(300, 3).astype(dtype), np.concatenate([grid(50, 3, 1), checks.gaussian(50, 3)]).astype(dtype)
    for height in (0, 1, 5, 8):
        tree = tree_of(points, height=height)
        leaves = np.full(100, -1, np.int32)
        tree.native.first_leaves(queries, 0, 60, leaves)
        assert (leaves[60:] == -1).all()
        tree.native.first_leaves(queries, 60, 100, leaves)
        for query, leaf in zip(queries, leaves, strict=True):
            node = 0
            while node < len(tree.split_values):
                node = 2 * node + 1 + int(query[tree.split_dimensions[node]] >= tree.split_values[node])
            assert leaf == node - len(tree.split_values)


def test_order_by_leaf_is_a_stable_sort() -> None:
    for m, leaves in ((1, 1), (500, 64), (64, 1 << 16)):
        homes = np.random.default_rng(m).integers(0, leaves, m).astype(np.int32)
        order = np.full(m, -1, np.int64)
        _native.order_by_leaf(homes, leaves, order)
        assert np.array_equal(order, np.argsort(homes, kind="stable"))


CHILD = """
import threading, time
import numpy as np
from tonari.kdtree.cpu.build import build
from tonari.kdtree.cpu.search import search_tree
from tonari.kdtree.plan import plan_tree
from tonari.metrics.problem import make_problem
from tonari.core.process.workers import Workers

points = {points}
m = len(points)
problem = make_problem(m, m, 24, 10, dtype=points.dtype, metric="euclidean", threads={threads})
plan = plan_tree(problem, traversal={traversal!r}, query_block=64)  # by rounds, the first queries end when most do
tree = build(points, height=plan.height, double=False, workers=Workers(2))
class Bar:
    def __init__(self):
        self.once = threading.Event()
    def add(self, amount):
        if not self.once.is_set():
            self.once.set()
            print("started", flush=True)
try:
    search_tree(points, points, tree, plan, bar=Bar())
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
else:
    print("finished", flush=True)
print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("traversal", TRAVERSALS)
@pytest.mark.parametrize(
    "points", ["np.random.default_rng(0).random((300_000, 24), np.float32)", "np.ones((100_000, 24), np.float32)"]
)
def test_interrupt_stops_within_a_second(points: str, traversal: str, threads: int) -> None:
    check_interrupt(CHILD.format(points=points, traversal=traversal, threads=threads))


def test_an_error_while_counting_ends_the_search() -> None:
    class Enough(Exception):
        pass

    class Bar:
        def add(self, amount: int) -> None:
            raise Enough

    points = checks.gaussian(300, 3)
    before = set(threading.enumerate())
    for threads, way in itertools.product((1, 2), WAYS):
        plan = plans.tree(
            300, 300, 3, 4, dtype=points.dtype, metric="sqeuclidean", threads=threads, query_block=16, **way
        )
        with pytest.raises(Enough):
            search_tree(points, points, tree_of(points), plan, bar=Bar())
    assert set(threading.enumerate()) <= before
