"""The tree on CUDA: answers with the bits of the reference.

Without a GPU, Triton's interpreter runs the kernels on the CPU, so shapes are tiny.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import Array, assert_same_neighbors
from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import GB, Stop, interrupt, on_host, rows_of, tensor_of, tensors
from tests.helpers.tree_search import DEVICE, check, plan_for, search
from tonari.kdtree.plan import TREE_METRICS
from tonari.kdtree.traversal import TRAVERSALS
from tonari.metrics import METRICS, get_metric
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    from tonari.core.results.neighbors import Neighbors
    from tonari.cuda import memory as device_memory
    from tonari.cuda.launch import launch
    from tonari.kdtree.cuda import dispatch as run
    from tonari.kdtree.cuda.build import build_on_device
    from tonari.kdtree.cuda.kernels.bounds import limit_of
    from tonari.kdtree.cuda.search import beyond, largest_of, order_of
    from tonari.kdtree.cuda.tree import WIDTH, DeviceTree

    @triton.jit
    def _limits_kernel(values_ptr, limits_ptr, D: tl.constexpr, METRIC: tl.constexpr):
        at = tl.arange(0, 8192)
        tl.store(limits_ptr + at, limit_of(tl.load(values_ptr + at), D, METRIC, 32))


pytestmark = [needs_torch]
# Queries, and points in three or five leaves.
M, N = (5, 300) if HAS_CUDA else (2, 130)


def tree_of(points: Array, *, leaf: int = 64, double: bool = False) -> DeviceTree:
    return build_on_device(tensor_of(points).to(DEVICE), leaf=leaf, double=double)


@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 15, 16, 17, 31, 32])
def test_every_width_and_metric(d: int, metric: str) -> None:
    check(checks.gaussian(M, d, 1), checks.gaussian(N, d), 7, metric)


@pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 63, 64])
def test_every_length_of_list(k: int) -> None:
    check(checks.gaussian(M, 3, 1), checks.gaussian(N, 3), k)


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 130])
def test_k_of_all_points(n: int) -> None:
    k = min(n, 64)
    check(checks.gaussian(M, 2, 1), checks.gaussian(n, 2), k)


@pytest.mark.parametrize(("queries", "points"), [(a, b) for a in ("float32", "uint8") for b in
                                                 ("float32", "float16", "float64", "uint8", "int8")]
                                                + [("bfloat16", "bfloat16")])  # fmt: skip
@pytest.mark.parametrize("metric", TREE_METRICS)
def test_every_dtype(queries: str, points: str, metric: str) -> None:
    check(rows_of(M, 5, queries, seed=1), rows_of(N, 5, points), 6, metric)


def test_float64_queries_of_float32_points_are_answered_in_float64() -> None:
    queries = checks.gaussian(4, 3, 1, np.float64)
    check(queries, checks.gaussian(200, 3), 6)
    assert search(queries, checks.gaussian(200, 3), 6).distances.dtype == np.float64


HARD = {
    "copies": checks.all_equal(200, 3),
    "few distinct": checks.duplicates(300, 3),
    "grid": np.stack(np.meshgrid(*[np.arange(7)] * 3), -1).reshape(-1, 3).astype(np.float32),
    "line": np.outer(np.arange(300), [1, 2, 3]).astype(np.float32),
    "tight far clusters": checks.tight_far_clusters(300, 5),
    "offset": checks.offset(300, 4, by=1e6),
    "offset float64": checks.offset_float64(300, 3),
    "GPS": checks.gps_metres(300),
    "subnormal": checks.subnormal(200, 3),
    "tiny": checks.gaussian(200, 3) * np.float32(1e-25),
    "large": checks.gaussian(200, 3) * np.float32(1e17),
    "zeros": checks.zero_rows(200, 4),
}


# Cubes of 1e17 overflow float32, of which NumPy, which runs in Triton's interpreter, warns.
@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("metric", TREE_METRICS)
def test_hard_rows(name: str, metric: str) -> None:
    rows = HARD[name]
    check(rows[:: len(rows) // M], rows, 9, metric)


@pytest.mark.parametrize(
    "name", ["grid", *(pytest.param(each, marks=pytest.mark.full) for each in ("copies", "few distinct"))]
)
def test_hard_self_joins(name: str) -> None:
    rows = HARD[name][: 120 if HAS_CUDA else 67]
    check(rows, rows, 5, self_join=True)


def test_queries_far_outside_and_among_the_points() -> None:
    points = checks.gaussian(300, 3)
    queries = np.concatenate([points[:2], points[:2] + 1e6, points[:2] * -1e12, points[:1] * 0]).astype(np.float32)
    check(queries, points, 5)


@pytest.mark.parametrize("metric", TREE_METRICS)
def test_beyond_knows_its_edge(metric: str) -> None:
    """Sums of 32 terms are finite in float32 up to this limit."""
    edge = np.float32(largest_of(metric))
    value = METRICS[metric].before_root.value
    assert value is not None
    assert np.isfinite(value(np.full((32, 1), edge), np.full((32, 1), -edge))).all()
    rows = np.array([[edge], [-edge], [np.nextafter(edge, np.float32(np.inf))], [np.nan], [np.inf], [0]], np.float32)
    assert beyond(torch.from_numpy(rows), metric).tolist() == [False, False, True, True, True, False]


@pytest.mark.parametrize("height", [0, 1, 3, 5])
def test_every_height(height: int) -> None:
    check(checks.gaussian(5, 3, 1), checks.gaussian(400, 3), 6, height=height)


@pytest.mark.parametrize(
    "choices",
    [
        {"sort": False},
        pytest.param({"query_block": 2}, marks=pytest.mark.full),
        {"query_block": 3, "sort": False},
        {"traversal": "buffered", "query_block": 40},
        pytest.param({"traversal": "buffered", "buffer": 2, "sort": False}, marks=pytest.mark.full),
    ],
    ids=str,
)
def test_plans_give_one_answer(choices: dict[str, Any]) -> None:
    check(checks.gaussian(7, 3, 1), checks.gaussian(N, 3), 6, **choices)
    rows = checks.gaussian(66, 3)
    check(rows, rows, 6, self_join=True, **choices)


def test_tensors_in_and_out() -> None:
    queries, points = checks.gaussian(5, 3, 1), checks.gaussian(300, 3)
    found = search(*tensors(DEVICE, queries, points), 6)
    assert str(found.distances.device) == str(found.indices.device) == DEVICE
    assert_same_neighbors(on_host(found), brute(queries, points, 6))


def test_strided_tensors() -> None:
    wide = tensors(DEVICE, checks.gaussian(300, 8))[0]
    queries, points = wide[::60, 2:5], wide[:, 2:5]
    assert not points.is_contiguous()
    found = search(queries, points, 6)
    truth = brute(queries.cpu().numpy(), points.cpu().numpy(), 6)
    assert_same_neighbors(on_host(found), truth)


@pytest.mark.parametrize("traversal", TRAVERSALS)
@pytest.mark.parametrize("which", ["points", "queries"])
def test_values_that_are_not_finite_are_named(which: str, traversal: str) -> None:
    given = {"queries": checks.gaussian(9, 3, 1), "points": checks.gaussian(100, 3)}
    given[which][5, 1] = np.nan
    with pytest.raises(ValueError, match=f"{which}: row 5 has a value that is not finite"):
        search(given["queries"], given["points"], 3, query_block=4, traversal=traversal)


def test_progress_of_rounds_counts_every_query_once() -> None:
    queries, points = checks.gaussian(9, 3, 1), checks.gaussian(100, 3)
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    search(queries, points, 3, query_block=4, traversal="buffered", progress=progress)
    assert seen[-1] == (9, 9)
    assert seen == sorted(seen)


def test_progress_counts_queries_and_stops() -> None:
    queries, points = checks.gaussian(9, 3, 1), checks.gaussian(100, 3)
    seen: list[tuple[int, int]] = []
    search(queries, points, 3, query_block=4, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 9), (8, 9), (9, 9)]
    with pytest.raises(KeyboardInterrupt):
        search(queries, points, 3, query_block=4, progress=Stop())


def visits_by_hand(tree: DeviceTree, query: Array, k: int) -> tuple[int, int]:
    """Count leaves and nodes of the recursive traversal, nearest child first, in float64."""
    boxes, ids = tree.boxes.cpu().numpy().astype(np.float64), tree.ids.cpu().numpy()
    rows = tree.rows.cpu().numpy().astype(np.float64).transpose(0, 2, 1).reshape(-1, tree.d)
    best: list[float] = []
    leaves = nodes = 0

    def enter(level: int, node: int) -> None:
        nonlocal leaves, nodes, best
        if level < 0:
            leaves += 1
            places = [at for at in range(node * tree.leaf, (node + 1) * tree.leaf) if ids[at] >= 0]
            values = ((rows[places] - query) ** 2).sum(axis=1)
            best = sorted([*best, *values])[:k]
            return
        nodes += 1
        box = boxes[tree.levels[level] + node]
        with np.errstate(invalid="ignore"):
            gaps = np.maximum(np.maximum(box[:, 0] - query[:, None], query[:, None] - box[:, 1]), 0)
        bounds = (gaps**2).sum(axis=0)
        for lane in np.argsort(bounds, kind="stable"):
            if np.isfinite(bounds[lane]) and (len(best) < k or bounds[lane] <= best[-1]):
                enter(level - 1, node * WIDTH + int(lane))

    enter(len(tree.levels) - 1, 0)
    return leaves, nodes


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        (50, 2, 3),
        (3000, 2, 5),
        *(pytest.param(*each, marks=pytest.mark.full) for each in ((3000, 6, 10), (6000, 3, 40))),
    ],
)
def test_visits_are_those_of_the_recursive_traversal(n: int, d: int, k: int) -> None:
    points, queries = checks.gaussian(n, d), checks.gaussian(12, d, 1)
    plan = plan_for(queries, points, k)
    prepared = run.prepare(points, plan)
    assert prepared.trees is not None
    expected = np.mean([visits_by_hand(prepared.trees[0], query, k) for query in queries], axis=0)
    seen = run.probe(prepared, queries, plan)
    assert (seen.leaves, seen.nodes) == tuple(expected)
    assert seen.points == seen.leaves * 64


@pytest.mark.parametrize("most", [1, 2, 5, 10**6])
def test_a_query_that_visits_much_is_left_to_brute_force(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bits are the same, and exactly those queries are left that have not ended before their last visit."""
    given_up: list[Array] = []
    by_force = run._by_brute_force

    def counting(queries: Any, points: Any, plan: Any, own: Any, bar: Any) -> Any:
        given_up.append(queries if isinstance(queries, np.ndarray) else queries.cpu().numpy())
        return by_force(queries, points, plan, own, bar)

    monkeypatch.setattr(run, "_by_brute_force", counting)
    if not HAS_CUDA:
        monkeypatch.setattr(device_memory, "free_memory", lambda devices: 8 * GB)
    points, queries = checks.gaussian(N, 3), checks.gaussian(M, 3, 1)
    queries[0] = 50.0  # equally near to every leaf
    tree = tree_of(points)
    visits = [sum(visits_by_hand(tree, query, 5)) for query in queries]
    check(queries, points, 5, most_visits=most)
    left = [query for query, count in zip(queries, visits, strict=True) if count >= most]
    assert len(given_up) == bool(left)
    assert not left or (np.asarray(left) == given_up[0]).all()


def test_queries_come_in_the_order_of_their_first_leaves() -> None:
    tree = tree_of(checks.gaussian(3000, 3))
    queries = checks.gaussian(200, 3, 1)
    boxes = tree.boxes.cpu().numpy().astype(np.float64)

    def home(query: Array) -> int:
        node = 0
        for begin in reversed(tree.levels):
            low, high = boxes[begin + node].transpose(1, 2, 0)
            gaps = np.maximum(np.maximum(low - query, query - high), 0)
            node = node * WIDTH + int((gaps**2).sum(axis=1).argmin())
        return node

    order = order_of(torch.from_numpy(queries).to(DEVICE), tree, "euclidean").tolist()
    homes = [home(queries[row]) for row in order]
    assert sorted(order) == list(range(200))
    assert len(set(homes)) > 20
    assert homes == sorted(homes)


@pytest.mark.parametrize("metric", ["euclidean", "l1"])
@pytest.mark.parametrize("d", [1, 32])
def test_the_limit_leaves_room_for_every_rounding(d: int, metric: str) -> None:
    """By (2 d + 26) half units in the last place, as docs/kdtree.md counts, with or without the bits of a child."""
    rng = np.random.default_rng(d)
    values = np.concatenate([10.0 ** rng.uniform(-15, 15, 8191), [0.0]]).astype(np.float32)
    limits = torch.zeros(8192, dtype=torch.int32, device=DEVICE)
    given = torch.from_numpy(values).to(DEVICE)
    launch(
        _limits_kernel,
        1,
        {"values_ptr": given, "limits_ptr": limits},
        constants={"D": d, "METRIC": get_metric(metric)},
        warps=1,
    )
    keys = limits.cpu().numpy()
    assert (keys & 31 == 31).all()
    reach = values.astype(np.float64) ** (2 if metric == "euclidean" else 1)
    room = keys.view(np.float32).astype(np.float64) - reach * (1 + (2 * d + 26) * 2.0**-24)
    assert (room > 0).all()
    assert (room <= reach * 1e-4 + 2e-36).all()


@on_gpu
@pytest.mark.parametrize("metric", TREE_METRICS)
@pytest.mark.parametrize(
    ("n", "m", "d", "k"),
    [(300_000, 20_000, 3, 10), (100_000, 5_000, 10, 40), (50_000, 2_000, 27, 5), (1_100_000, 3_000, 5, 64)],
)
def test_large_searches_have_the_bits_of_brute_force(n: int, m: int, d: int, k: int, metric: str) -> None:
    import tonari

    for make in (checks.gaussian, checks.tight_far_clusters):
        points, queries = tensors("cuda", make(n, d), make(m, d, 1))
        truth = tonari.search(queries, points, k, metric=metric, method="exact")
        found = tonari.search(queries, points, k, metric=metric, method="kdtree")
        assert torch.equal(found.distances, truth.distances)
        assert torch.equal(found.indices, truth.indices)


@on_gpu
def test_a_large_graph_of_ties() -> None:
    import tonari

    rows = np.stack(np.meshgrid(*[np.arange(40)] * 3), -1).reshape(-1, 3).astype(np.float32)
    found = tonari.knn_graph(rows, 10, method="kdtree", device="cuda")
    truth = tonari.knn_graph(rows, 10, method="exact")
    assert_same_neighbors(Neighbors(found.distances, found.indices), Neighbors(truth.distances, truth.indices))


@on_gpu
def test_ctrl_c_stops_within_a_second() -> None:
    interrupt("torch.rand((2_000_000, 25), device='cuda')", 10, "method='kdtree'")
