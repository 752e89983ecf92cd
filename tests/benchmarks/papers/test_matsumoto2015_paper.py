"""matsumoto2015's TH-heap as a whole search, on small data in host memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still

torch = pytest.importorskip("torch", reason="the pipeline is in torch")

import tonari  # noqa: E402
from benchmarks.harness.datasets import hard as data  # noqa: E402
from benchmarks.papers.matsumoto2015 import SUITE  # noqa: E402
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


def test_the_search_is_a_case_beside_the_figures() -> None:
    (case,) = SUITE.chosen("cuda", ["search"])
    assert (case.n, case.m, case.d, case.k, case.data) == (1_000_000, 8192, 128, 64, "sift")
    assert case.data in data.KINDS
