"""matsumoto2015's TH-heap as a whole search, on small data in host memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still

torch = pytest.importorskip("torch", reason="the pipeline is in torch")

import tonari  # noqa: E402
import tonari.select  # noqa: E402
from benchmarks.harness.datasets import hard as data  # noqa: E402
from benchmarks.papers.matsumoto2015 import SUITE, finish  # noqa: E402
from benchmarks.papers.matsumoto2015 import search as matsumoto  # noqa: E402
from benchmarks.suites.exact_cuda.warm import NoCeilings  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("samples", [3, 64, 10**6])
@pytest.mark.parametrize("kind", ["gaussian", "copies 16"])
def test_th_heap_is_a_stable_sort_of_its_distances(kind: str, k: int, samples: int) -> None:
    points, queries = data.make(kind, 500, 33, 6, "cpu")
    pipeline = matsumoto.Pipeline(tonari.select_k, points, k, samples, batch=8)
    distances, indices = pipeline.search(queries)
    parts = [pipeline.distances(queries[start : start + 8]) for start in range(0, 33, 8)]
    expected = torch.cat(parts).sort(dim=1, stable=True)
    np.testing.assert_array_equal(distances, expected.values[:, :k].numpy())
    np.testing.assert_array_equal(indices, expected.indices[:, :k].numpy())
    if samples >= k:
        assert 33 * k <= pipeline.survivors <= pipeline.sent <= 33 * 500
    if samples == 10**6:
        assert kind == "copies 16" or pipeline.survivors == 33 * k
    if samples == 64 and k == 5:
        assert pipeline.survivors < 33 * 500 / 4
    truth = brute(queries.numpy(), points.numpy(), k)
    np.testing.assert_allclose(distances, truth.distances, atol=2e-3)


def test_th_heap_is_set_beside_ours() -> None:
    run = bench_checks.a_run(device=Still(kind="cuda", title="a card"), ceilings=NoCeilings())
    matsumoto.compare(run, bench_checks.a_case(n=400, m=40, d=8, k=4, device="cuda"))
    ours, small, large = run.rows
    assert ours["who"] == "tonari"
    assert [small["who"], large["who"]] == ["TH-heap, n_S = 32", "TH-heap, n_S = 128"]
    assert small["recall"] == pytest.approx(1.0)
    assert small["ratio"] == pytest.approx(1.0)
    assert float(small["note"].split()[0]) > float(large["note"].split()[0]) >= 4


def test_both_finishes_find_the_smallest_of_the_same_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "SIZES_K", (2, 32))
    run = bench_checks.a_run(scale=2**-6)
    (case,) = SUITE.chosen("cpu", ["finish"])
    finish.compare(run, case)
    rows = {(row["data"], row["k"], row["n"], row["extras"]["series"].split()[-1]): row for row in run.rows}
    assert set(rows) == {
        (kind, k, times * k, how)
        for kind in ("sift", "uniform")
        for k in (2, 32)
        for times in (64, 128)
        for how in (*finish.FINISHES, "whole")
    }
    for (kind, k, n, how), row in rows.items():
        assert row["proved"]
        assert row["extras"]["series"] == f"{kind}, {n // k // 8} k left: {how}"
        if k == 32:
            assert 4 * k < row["extras"]["survivors"] < 24 * k


def test_the_finishes_are_asked_for_no_threshold_of_their_own() -> None:
    """At 8 k and 16 k survivors no more pruning occurs: all survivors reach the heap, or are halved."""
    for left in (8, 16):
        for how in finish.FINISHES:
            counters = tonari.select.Counters()
            rows = np.random.default_rng(1).random((16, 32 * left), dtype=np.float32)
            tonari.select_k(rows, 32, method="threshold", finish=how, samples=finish.TOO_FEW, counters=counters)
            assert counters.compression_ratio == 1.0


def test_the_search_is_a_case_beside_the_figures() -> None:
    (case,) = SUITE.chosen("cuda", ["search"])
    assert (case.n, case.m, case.d, case.k, case.data) == (1_000_000, 8192, 128, 64, "sift")
    assert case.data in data.KINDS
