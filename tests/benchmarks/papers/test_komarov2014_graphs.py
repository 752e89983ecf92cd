"""komarov2014's whole graphs by products and quick multi-select, on small data in host memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import done

torch = pytest.importorskip("torch", reason="the products are torch's")

import tonari  # noqa: E402
from benchmarks.papers.komarov2014 import SUITE, graphs  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402


@pytest.mark.parametrize("metric", graphs.METRICS)
def test_batches_of_products_give_the_graph(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).standard_normal((67, 9), dtype=np.float32)
    monkeypatch.setattr(graphs, "BATCH_VALUES", 67 * 10)
    distances, indices = graphs.as_in_the_paper(tonari.select_k, torch.from_numpy(rows), 5, metric)
    truth = brute(rows, rows, 5, metric, self_ids=np.arange(67))
    np.testing.assert_allclose(distances.numpy(), truth.distances, atol=1e-5)
    np.testing.assert_array_equal(indices.numpy(), truth.indices)


@pytest.mark.parametrize("metric", graphs.METRICS)
def test_graphs_are_measured_beside_ours(metric: str) -> None:
    run = bench_checks.a_run(scale=2**-5)
    (case,) = SUITE.chosen("cpu", [f"graph-{metric}"])
    done(run, case)
    assert run.wrong == 0
    shapes = {(64, 32), (128, 32), (256, 32), (256, 128)}
    for who in ("tonari", graphs.WHO):
        mine = [row for row in run.rows if row["who"] == who]
        assert {(row["n"], row["k"]) for row in mine} == shapes
        assert {row["metric"] for row in mine} == {metric}
        assert all(row["recall"] == 1.0 and row["seconds_median"] for row in mine)


def test_a_wrong_distance_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = graphs.as_in_the_paper

    def squared(*args: object, **options: object) -> object:
        distances, indices = real(*args, **options)
        return distances**2, indices

    monkeypatch.setattr(graphs, "as_in_the_paper", squared)
    run = bench_checks.a_run(scale=2**-5)
    (case,) = SUITE.chosen("cpu", ["graph-euclidean"])
    done(run, case)
    assert run.wrong == 1
    assert "disagrees" in bench_checks.notes(run)
