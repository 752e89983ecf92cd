"""The reported recall is measured on rows that no choice was fitted to, so its interval covers the true recall."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tonari
from tests.helpers import plans
from tests.helpers.devices import needs_torch
from tonari.core.rows.draws import Purpose, generator
from tonari.nn_descent.cpu.clusters import training_rows
from tonari.nn_descent.driver import measured_rows

SEEDS = 20


@pytest.mark.parametrize("n", [8_000, 20_000, 60_000])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_torch)])
def test_measured_rows_are_trained_on_no_more_than_others(n: int, device: str) -> None:
    """The clusters of a run saw no more of the measured rows than expected by chance."""
    shares, centres, expected = [], [], 0.0
    for seed in range(SEEDS):
        plan = plans.descent(n, 24, 10, dtype=np.float32, metric="euclidean", threads=1, recall=0.95, seed=seed)
        ((size, measured),) = measured_rows(plan)
        assert size == n
        if device == "cuda":
            from tonari.nn_descent.cuda import clusters

            trained = clusters.training_rows(n, plan, "cpu").numpy()
            first = trained[: plan.n_clusters]
        else:
            trained, places = training_rows(n, plan)
            first = trained[places]
        expected = len(trained) / n
        shares.append(np.isin(measured, trained).mean())
        centres.append(np.isin(measured, first).mean() - len(first) / n)
    assert 0 < expected < 0.5
    assert abs(np.mean(shares) - expected) < 5 * np.sqrt(expected / (SEEDS * len(measured)))
    assert abs(np.mean(centres)) < 0.002


@pytest.mark.parametrize("seed", [0, 7])
def test_a_graph_is_checked_on_other_rows_than_its_run(seed: int) -> None:
    plan = plans.descent(20_000, 24, 10, dtype=np.float32, metric="euclidean", threads=1, recall=0.95, seed=seed)
    ((_, measured),) = measured_rows(plan)
    checked = generator(seed, Purpose.CHECKED).choice(20_000, 1000, replace=False)
    assert np.isin(checked, measured).mean() < 0.1  # 0.05 expected


def test_the_reported_interval_covers_the_true_recall() -> None:
    """In 20 runs, half a run is expected to report an interval above its true recall; four have odds of 1 to 700."""
    points = np.random.default_rng(0).standard_normal((8000, 24)).astype(np.float32)
    last = tonari.knn_graph(points, 10, method="exact").distances[:, -1:]
    below, differences = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a run may miss the target, but then it has to report this
        for seed in range(SEEDS):
            graph = tonari.knn_graph(points, 10, method="nn-descent", recall=0.95, seed=seed)
            true = float((graph.distances <= last).mean())
            estimate = graph.report.estimate
            below.append(true < estimate.low)
            differences.append(estimate.by_distance - true)
    assert sum(below) <= 3, differences
    assert abs(np.mean(differences)) < 0.002
