"""The plan of NN-Descent: what is chosen, what is refused with the reason, and what memory is counted."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

import tonari
from tests.helpers import plans
from tonari.nn_descent.plan import DescentPlan, check_recall, check_seed

GIB = 1 << 30


def made(n: int = 100_000, d: int = 32, k: int = 10, **given: Any) -> DescentPlan:
    return plans.descent(n, d, k, **{"dtype": "float32", "metric": "euclidean", "threads": 2} | given)


def on_cuda(n: int = 10**6, d: int = 128, k: int = 10, **given: Any) -> DescentPlan:
    usual = {"dtype": "float32", "metric": "euclidean", "devices": ("cuda:0",), "free_bytes": 70 * GIB}
    return plans.descent(n, d, k, **usual | given)


def test_usual_choices() -> None:
    plan = made()
    assert (plan.n, plan.m, plan.d, plan.k, plan.method) == (100_000, 100_000, 32, 10, "nn-descent")
    assert (plan.recall, plan.seed, plan.start, plan.threads) == (0.99, 0, "clusters", 2)
    assert (plan.list_size, plan.n_hubs, plan.reverse, plan.neighbors_per_hub, plan.width) == (32, 16, 16, 31, 384)
    assert (plan.n_clusters, plan.n_probe, plan.rounds, plan.sample) == (781, 64, 12, 1000)
    assert (plan.device, plan.devices) == ("cpu", ())
    assert made(start="random").rounds == 24
    assert plan == made()


@pytest.mark.parametrize(
    ("n", "k", "size"), [(1000, 1, 32), (1000, 16, 32), (1000, 17, 48), (1000, 100, 160), (20, 3, 19), (2, 1, 1)]
)
def test_lists_hold_more_than_k_and_never_more_than_all_others(n: int, k: int, size: int) -> None:
    plan = made(n=n, k=k)
    assert plan.list_size == size
    assert max(plan.n_hubs, plan.neighbors_per_hub) <= size
    assert plan.n_clusters <= n
    assert plan.sample == min(n, 1000)


def test_more_rows_are_measured_where_little_may_be_missing() -> None:
    assert [made(recall=recall).sample for recall in (0.5, 0.99, 0.995, 0.999)] == [1000, 1000, 2000, 10_000]
    assert made(n=3000, recall=0.9999).sample == 3000


def test_choices_on_cuda() -> None:
    plan = on_cuda()
    assert (plan.device, plan.devices, plan.isa, plan.threads) == ("cuda", ("cuda:0",), "", 0)
    assert (plan.n_probe, plan.sample, plan.n_clusters) == (16, 4000, 3906)
    assert on_cuda(recall=0.95).n_probe == 8
    assert on_cuda(k=17).n_probe == 48
    joined = on_cuda(k=17, start="graph")
    assert (joined.n_probe, joined.train_per_cluster, joined.kmeans_iters, joined.sample) == (4, 16, 1, 2000)
    assert [(plan.neighbors_per_hub, plan.width) for plan in (plan, on_cuda(k=11))] == [(15, 192), (31, 384)]
    assert [on_cuda(n=n).block for n in (1000, 10**6, 10**7)] == [8192, 12288, 65536]
    assert plan.copied_bytes == 10**6 * 128 * 4
    assert on_cuda(host_points=False).copied_bytes == 0
    with pytest.raises(
        ValueError, match=r"runs on one device, got cuda:0, cuda:1: .* use device='cuda:0', or tonari.build_graph"
    ):
        on_cuda(devices=("cuda:0", "cuda:1"))
    with pytest.raises(ValueError, match="threads=2: the search runs on cuda:0"):
        on_cuda(threads=2)
    with pytest.raises(ValueError, match="cannot override isa"):
        on_cuda(isa="avx2")
    with pytest.raises(ValueError, match="cannot hold a graph"):
        on_cuda(free_bytes=GIB)


def test_overrides_are_taken() -> None:
    given = {
        "list_size": 40,
        "start": "random",
        "n_clusters": 7,
        "n_probe": 3,
        "train_per_cluster": 5,
        "kmeans_iters": 0,
        "n_hubs": 8,
        "reverse": 0,
        "neighbors_per_hub": 9,
        "width": 11,
        "rounds": 2,
        "sample": 77,
        "block": 13,
        "isa": "generic",
    }
    plan = made(**given)
    assert {name: getattr(plan, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recall": 1.0}, r"recall=1.0: expected a number between 0 and 1.*method='exact'"),
        ({"recall": 0}, "recall=0: expected"),
        ({"recall": "0.9"}, "recall='0.9': expected"),
        ({"recall": True}, "recall=True: expected"),
        ({"recall": float("nan")}, "recall=nan: expected"),
        ({"seed": -1}, "seed=-1: expected a whole number from 0 to 4294967295"),
        ({"seed": 1.5}, "seed=1.5: expected"),
        ({"seed": 2**32}, "seed=4294967296"),
        ({"list_size": 9}, "list_size=9: a list holds at least its k=10 neighbours, and at most n - 1 = 99999"),
        ({"list_size": 100_000}, "list_size=100000: a list"),
        ({"list_size": 20.0}, "list_size must be a whole number of at least 1, got 20.0"),
        ({"n_hubs": 33}, "n_hubs=33: at most 32, since a list has no more neighbours"),
        ({"neighbors_per_hub": 33}, "neighbors_per_hub=33: at most 32"),
        ({"n_clusters": 100_001}, "n_clusters=100001: at most 100000, since there are no more points"),
        ({"n_clusters": 2, "n_probe": 3}, "n_probe=3: at most 2, since there are no more clusters"),
        ({"sample": 100_001}, "sample=100001: at most 100000"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1"),
        ({"start": "graphs"}, "start='graphs': expected one of 'clusters', 'random', 'graph'"),
        ({"lists": 3}, "cannot override lists; these can be: block, isa, kmeans_iters"),
        ({"isa": "sse"}, "cannot run the instruction set 'sse'"),
        ({"k": 100_000}, "k=100000"),
        ({"n": 2**30 + 1}, "n=1073741825: method='nn-descent' takes up to 1073741824 points; use tonari.build_graph"),
        ({"metric": "mahalanobis"}, "metric 'mahalanobis' is not supported: multiply"),
        ({"dtype": "int64"}, "dtype int64 is not supported"),
    ],
)
def test_what_cannot_work_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**given)


def test_recall_and_seed_come_back_plain() -> None:
    import numpy as np

    assert [type(check_recall(np.float32(0.5))), type(check_seed(np.int64(7)))] == [float, int]


def test_a_budget_is_kept_or_refused_with_the_least_that_works() -> None:
    free = made()
    assert made(memory=free.total_bytes) == free
    with pytest.raises(ValueError, match="cannot hold a graph by NN-Descent") as refused:
        made(memory=free.total_bytes - 1)
    assert re.findall(r"allow at least (\d+)", str(refused.value)) == [str(free.total_bytes)]
    assert made(list_size=10).total_bytes < free.total_bytes


def test_memory_counts_lists_twice_and_the_graph() -> None:
    one, more = (made(list_size=size, start="random") for size in (32, 64))
    assert more.working_bytes - one.working_bytes >= 2 * 100_000 * 32 * 4
    assert one.output_bytes == 100_000 * 10 * 8
    assert made(dtype="float64").output_bytes == 100_000 * 10 * 12
    for plan in (one, on_cuda()):
        parts = (plan.packed_bytes, plan.copied_bytes, plan.working_bytes, plan.output_bytes)
        assert plan.total_bytes == sum(parts) == plan.as_dict()["total_bytes"]


def test_expected_seconds() -> None:
    assert made(d=128).seconds == pytest.approx(1.25, rel=0.1)
    assert made(n=10**6, d=128).seconds == pytest.approx(15, rel=0.1)
    there = on_cuda(host_points=False).seconds
    assert there == pytest.approx(0.145, rel=0.1)
    assert on_cuda().seconds - there == pytest.approx(10**6 * 128 * 4 / 2e10)
    assert made(threads=1).seconds > 1.9 * made(threads=2).seconds
    assert made(d=64).seconds > made(d=32).seconds


def test_light_rounds_have_half_the_numbers() -> None:
    assert (made().light_rounds, on_cuda().light_rounds, made(light_rounds=0).light_rounds) == (1, 0, 0)
    plan = made(n_hubs=15, reverse=1, neighbors_per_hub=8)
    assert plan.light == dataclasses.replace(plan, n_hubs=8, reverse=1, neighbors_per_hub=4)
    with pytest.raises(ValueError, match="light_rounds"):
        made(light_rounds=-1)


def test_it_is_frozen_and_shows_itself() -> None:
    plan = made()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.recall = 0.5  # type: ignore[misc]
    assert json.loads(json.dumps(plan.as_dict()))["method"] == "nn-descent"
    assert re.search(r"list_size +32\n", str(plan))


def test_tonari_plan_makes_it() -> None:
    given: dict[str, Any] = {"method": "nn-descent", "recall": 0.95, "seed": 3, "threads": 2, "rounds": 5}
    assert tonari.plan(1000, 1000, 8, 5, **given) == plans.descent(
        1000, 8, 5, dtype="float32", metric="euclidean", recall=0.95, seed=3, threads=2, rounds=5
    )
    with pytest.raises(ValueError, match="builds a graph, which has as many queries as points: m=10, n=1000"):
        tonari.plan(1000, 10, 8, 5, **given)
    for method in ("exact", "auto", "kdtree"):
        with pytest.raises(ValueError, match=f"recall is for method='nn-descent', got method='{method}'"):
            tonari.plan(1000, 1000, 8, 5, method=method, recall=0.9)
        with pytest.raises(ValueError, match="seed is for method='nn-descent'"):
            tonari.plan(1000, 1000, 8, 5, method=method, seed=0)
