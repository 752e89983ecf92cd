"""The plan of a search by a tree: pure, readable, and with strict overrides."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import plans
from tonari.core.errors import Unsupported
from tonari.cuda import memory as device_memory
from tonari.kdtree import plan as planning
from tonari.kdtree.cuda.tree import device_tree_bytes
from tonari.kdtree.plan import TREE_METRICS, TreePlan
from tonari.metrics import METRICS

DEVICES = ("cuda:0",)


def made(n: int = 1000, m: int = 100, d: int = 5, k: int = 4, **choices: Any) -> TreePlan:
    return plans.tree(n, m, d, k, **{"dtype": "float32", "metric": "euclidean"} | choices)


def on_cuda(n: int = 10**6, m: int = 10**5, d: int = 5, k: int = 4, **choices: Any) -> TreePlan:
    return made(n, m, d, k, **{"devices": DEVICES, "free_bytes": 80 * 10**9} | choices)


def test_plan_makes_it_for_the_method() -> None:
    plan = tonari.plan(1000, 100, 5, 4, method="kdtree", threads=3, metric="l1", dtype="uint8")
    assert plan == made(threads=3, metric="l1", dtype="uint8")
    assert (plan.method, plan.device, plan.devices, plan.threads) == ("kdtree", "cpu", (), 3)
    assert (plan.dtype, plan.held) == ("uint8", "float32")
    assert tonari.plan(1000, 100, 5, 4, method="auto").method == "exact"


def test_it_survives_json_and_reads_as_a_table() -> None:
    for plan in (made(), on_cuda()):
        fields = json.loads(json.dumps(plan.as_dict()))
        parts = ("packed_bytes", "copied_bytes", "working_bytes", "output_bytes")
        assert fields["total_bytes"] == plan.total_bytes == sum(fields[part] for part in parts)
        shown = dict(line.split(maxsplit=1) for line in str(plan).splitlines())
        assert set(shown) == set(fields)
        assert shown["method"] == "kdtree"


@pytest.mark.parametrize("metric", METRICS)
def test_metrics(metric: str) -> None:
    if metric in TREE_METRICS:
        assert made(metric=metric).metric == metric
        return
    message = rf"kdtree' supports {', '.join(TREE_METRICS)}, not {metric}; use method='exact' or 'auto'"
    with pytest.raises(ValueError, match=message):
        made(metric=metric)
    rows = np.ones((9, 2), np.float32)
    for call in (
        lambda: tonari.plan(9, 9, 2, 1, metric=metric, method="kdtree"),
        lambda: tonari.search(rows, rows, 1, metric=metric, method="kdtree"),
        lambda: tonari.Index(rows, metric=metric, method="kdtree"),
        lambda: tonari.knn_graph(rows, 1, metric=metric, method="kdtree"),
        lambda: tonari.knn_graph(rows, 1, metric=metric, method="kdtree", include_self=True),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"height": -1}, r"height must be a whole number of at least 0, got -1"),
        ({"height": 10}, r"height=10: expected 0 to 9"),
        ({"height": 2.0}, r"height must be a whole number"),
        ({"height": True}, r"height must be a whole number"),
        ({"leaf": 0}, r"leaf must be a whole number of at least 1, got 0"),
        ({"leaf": "many"}, r"leaf must be a whole number"),
        ({"leaf": 8, "height": 3}, r"got both height and leaf, which determine each other"),
        ({"query_block": 0}, r"query_block must be a whole number of at least 1"),
        ({"isa": "sse9"}, r"cannot run the instruction set 'sse9'"),
        ({"traversal": "rounds"}, r"traversal='rounds': expected 'walk' or 'buffered'"),
        ({"traversal": True}, r"traversal=True: expected 'walk' or 'buffered'"),
        ({"traversal": "buffered", "buffer": 0}, r"buffer must be a whole number of at least 1, got 0"),
        ({"buffer": 9}, r"buffer: the walk has no buffers; set traversal='buffered' with it"),
        ({"traversal": "walk", "buffer": 9}, r"buffer: the walk has no buffers"),
        (
            {"precisions": ("float32",)},
            "cannot override precisions; these can be: buffer, height, isa, leaf, query_block, sort, traversal",
        ),
        ({"k": 1001}, r"k=1001: the largest k is 1000"),
        ({"dtype": "int32"}, r"dtype int32 is not supported"),
        ({"memory": "1MB"}, r"budget of 1000000 bytes cannot hold a tree .* use method='exact'"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(override: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.plan(**({"n": 1000, "m": 100, "d": 5, "k": 4, "method": "kdtree"} | override))


def test_sort_is_true_or_false() -> None:
    assert not made(sort=False).sort
    with pytest.raises(TypeError, match=r"sort=1: expected True or False"):
        made(sort=1)


@pytest.mark.parametrize("n", [1, 2, 7, 16, 17, 64, 65, 1000])
@pytest.mark.parametrize("leaf", [1, 16, 64])
def test_leaves_hold_what_is_wanted(n: int, leaf: int) -> None:
    plan = made(n=n, k=1, leaf=leaf)
    assert 1 << plan.height <= n
    assert -(-n >> plan.height) <= leaf or 2 << plan.height > n
    assert plan.height == 0 or -(-n >> (plan.height - 1)) > leaf
    assert made(n=n, k=1, height=plan.height).height == plan.height


def test_more_dimensions_want_larger_leaves() -> None:
    leaves = [made(d=d).leaf for d in range(1, 31)]
    assert leaves == sorted(leaves)
    assert leaves[0] < leaves[-1]


def test_rounds_take_larger_leaves_on_the_cpu() -> None:
    for d in (2, 4, 10):
        assert made(n=10**6, d=d, traversal="buffered").leaf == 2 * made(n=10**6, d=d).leaf
        assert made(n=10**6, d=d, traversal="buffered", leaf=7).leaf == 7
    assert on_cuda(traversal="buffered").leaf == on_cuda().leaf


def test_float64_of_either_side_is_held() -> None:
    assert [made(dtype=dtype).held for dtype in ("float16", "bfloat16", "int8", "float64")] == [
        *["float32"] * 3,
        "float64",
    ]
    wide = made(query_dtype="float64")
    assert (wide.dtype, wide.held) == ("float32", "float64")
    assert wide.packed_bytes > made().packed_bytes
    assert wide.output_bytes == 100 * 4 * 12


def test_the_buffered_traversal_on_the_cpu_is_for_the_case_of_the_paper() -> None:
    for metric, dtype in (("euclidean", "float32"), ("sqeuclidean", "uint8")):
        assert made(traversal="buffered", metric=metric, dtype=dtype).traversal == "buffered"
    for given, came in (
        ({"metric": "l1"}, "metric='l1' and a tree of float32"),
        ({"dtype": "float64"}, "metric='euclidean' and a tree of float64"),
        ({"query_dtype": "float64"}, "metric='euclidean' and a tree of float64"),
    ):
        message = f"traversal='buffered' on the CPU: got {came}, expected euclidean or sqeuclidean and float32; leave"
        with pytest.raises(Unsupported, match=message):
            made(traversal="buffered", **given)
        assert made(**given).traversal == "walk"
        assert on_cuda(traversal="buffered", **given).traversal == "buffered"


def test_limits_on_cuda() -> None:
    plan = on_cuda(k=64, d=32)
    assert (plan.device, plan.devices, plan.isa, plan.threads) == ("cuda", DEVICES, "", 0)
    for given, message in (
        ({"k": 65}, r"k=65: on CUDA method='kdtree' takes k up to 64; use method='exact' or 'auto'"),
        ({"d": 33}, r"d=33: on CUDA method='kdtree' takes d up to 32"),
        ({"n": 2**31}, r"n=2147483648: on CUDA method='kdtree' takes n up to 2147483647"),
        ({"threads": 2}, r"threads=2: the search runs on cuda:0"),
        ({"isa": "avx2"}, r"cannot override isa; these can be: buffer, height, leaf, most_visits, point_slab, "),
        ({"most_visits": 9, "traversal": "buffered"}, r"most_visits: only the walk counts visits"),
        (
            {"most_visits": 9, "point_slab": 1000},
            r"most_visits: needs one tree of all 1000000 points, not trees of 1000",
        ),
        ({"most_visits": 0}, r"most_visits must be a whole number of at least 1, got 0"),
        ({"free_bytes": 6 * 10**8}, r"cannot hold a tree"),
    ):
        with pytest.raises(ValueError, match=message):
            on_cuda(**given)


def test_queries_on_a_device_are_as_many_as_fit() -> None:
    alone = on_cuda(n=2 * 10**6, m=8 * 10**8, d=10, k=10, host_queries=False)
    assert alone.query_block < alone.m
    assert 0.95 * 80e9 - 2**29 < alone.total_bytes <= 80e9 - 2**29
    assert on_cuda(m=10**5).query_block == 10**5
    four = on_cuda(m=10**5, devices=tuple(f"cuda:{i}" for i in range(4)))
    assert four.query_block == 25_000
    assert four.copied_bytes >= 10**6 * 5 * 4


def test_queries_in_host_memory_come_in_blocks_that_hide_their_copies() -> None:
    """For each block that is not being searched, memory holds the queries that arrive, and the lists that leave."""
    sizes: dict[str, Any] = {"n": 2 * 10**6, "d": 10, "k": 10}
    blocks = {m: on_cuda(m=m, **sizes).query_block for m in (1, 10**5, 262_143, 262_144, 10**6, 10**8)}
    assert blocks == {1: 1, 10**5: 10**5, 262_143: 262_143, 262_144: 131_072, 10**6: 250_000, 10**8: 1_041_667}
    one, several = (on_cuda(m=m, query_block=10**5, **sizes) for m in (10**5, 2 * 10**5))
    assert several.copied_bytes - one.copied_bytes == 10**5 * 40
    assert several.output_bytes - one.output_bytes == 10**5 * 80
    tight = on_cuda(m=10**8, memory=500 * 10**6, **sizes)
    assert tight.query_block < 1_041_667
    assert tight.total_bytes <= 500 * 10**6


def test_trees_of_slabs_are_kept_where_the_host_has_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then two trees are on the device: one is searched, and one is being copied."""
    sizes: dict[str, Any] = {"n": 10**7, "d": 10, "m": 10**6, "k": 10, "memory": 10**9}
    whole = device_tree_bytes(10**7, 10, 64, 4)
    for free, keeps in ((2.02 * whole, True), (1.98 * whole, False)):
        monkeypatch.setattr(planning, "free_host_memory", lambda free=free: free)
        plan = on_cuda(**sizes)
        assert plan.point_slab < plan.n
        assert plan.total_bytes <= 10**9
        assert (plan.kept_bytes > 0) == keeps
        tree = device_tree_bytes(plan.point_slab, 10, 64, 4)
        assert plan.packed_bytes == (2 * tree if keeps else tree)
        assert not keeps or whole <= plan.kept_bytes < 1.01 * whole
        assert on_cuda(**sizes | {"memory": None}).kept_bytes == 0


def test_searches_take_the_slabs_that_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of queries, unless more memory is needed in addition to a tree."""
    sizes: dict[str, Any] = {"n": 10**7, "d": 10}
    monkeypatch.setattr(planning, "free_host_memory", lambda: 10**12)
    for memory in (10**9, 441 * 10**6, 255 * 10**6):
        first = on_cuda(m=1, k=1, memory=memory, **sizes)
        assert first.point_slab < first.n
        for m in (1, 10**5, 10**8):
            later = on_cuda(m=m, k=64, memory=memory, prepared_by=first, **sizes)
            assert (later.point_slab, later.kept_bytes) == (first.point_slab, first.kept_bytes)
            assert later.total_bytes <= memory
        # More memory allows no larger trees, because they do not exist.
        assert on_cuda(m=1, k=1, prepared_by=first, **sizes).point_slab == first.point_slab
    first = on_cuda(m=1, k=1, memory=10**9, **sizes)
    lists = on_cuda(m=10**6, k=32, memory=10**9, prepared_by=first, host_queries=False, **sizes)
    assert lists.point_slab < first.point_slab
    assert lists.kept_bytes == 0


def test_lying_on_the_device_already_costs_nothing() -> None:
    there = on_cuda(host_points=False, host_queries=False)
    assert there.copied_bytes == 0
    assert on_cuda().copied_bytes == 10**6 * 5 * 4 + 10**5 * 5 * 4


def test_small_trees_are_planned_without_asking_for_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(device_memory, "free_memory", lambda devices: asked.append(devices) or 80 * 10**9)
    for where in ({}, {"host_points": False, "host_queries": False}, {"devices": ("cuda:0", "cuda:1")}):
        given: dict[str, Any] = {"devices": DEVICES} | where
        small, large = made(20_000, 1000, 3, 10, **given), made(10**7, 10**5, 10, 10, **given)
        assert asked == [given["devices"]]  # by the large one
        asked.clear()
        assert small == on_cuda(20_000, 1000, 3, 10, **given)
        assert large == on_cuda(10**7, 10**5, 10, 10, **given)
    made(20_000, 1000, 3, 10, devices=DEVICES, memory=10**9)
    assert asked == [DEVICES]
    with pytest.raises(ValueError, match="method='kdtree' takes d up to 32"):
        made(20_000, 1000, 33, 10, devices=DEVICES)
