"""Choices of a plan that the caller leaves open."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import plans
from tonari.nn_descent.plan import DescentPlan

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


def test_expected_seconds() -> None:
    assert made(d=128).seconds == pytest.approx(1.25, rel=0.1)
    assert made(n=10**6, d=128).seconds == pytest.approx(15, rel=0.1)
    there = on_cuda(host_points=False).seconds
    assert there == pytest.approx(0.145, rel=0.1)
    assert on_cuda().seconds - there == pytest.approx(10**6 * 128 * 4 / 2e10)
    assert made(threads=1).seconds > 1.9 * made(threads=2).seconds
    assert made(d=64).seconds > made(d=32).seconds
