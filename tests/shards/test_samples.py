"""Samples of rows whose true neighbours are known."""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.shards import built, by_shards, check_built, clustered
from tonari.shards import samples, tasks


def test_the_recall_is_not_that_for_which_the_overlap_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If recall were measured on the sample that chooses the overlap, every build would report the requested share."""
    by_shards(monkeypatch, 900)
    points = checks.gaussian(4000, 8)
    last = np.asarray(tonari.knn_graph(points, 6).distances)[:, -1:]
    reported, below = [], 0
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        graph = built(points, 6, tmp_path / str(seed), "clusters", recall=0.8, seed=seed)
        assert graph.report is not None
        reported.append(graph.report.estimate.by_distance)
        below += float((np.asarray(graph.distances) <= last).mean()) < graph.report.estimate.low
    assert np.std(reported) > 0.001, reported
    assert below <= 1


def test_the_rows_of_the_samples_are_read_once_for_each_purpose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read some rows by their numbers, an object may have to make all rows each time."""
    by_shards(monkeypatch, 400)
    read: dict[str, list[int]] = {}
    usual = tasks.Worker.compute

    def compute(worker: tasks.Worker, step: tasks.Step, task: tasks.Task, piece: object) -> object:
        load = worker.load

        def at(ids: np.ndarray) -> object:
            read.setdefault(task.kind, []).append(len(ids))
            return load.at(ids)

        worker.__dict__["load"] = types.SimpleNamespace(at=at, range=load.range)
        try:
            return usual(worker, step, task, piece)
        finally:
            worker.__dict__["load"] = load

    monkeypatch.setattr(tasks.Worker, "compute", compute)
    points = clustered(1500)
    with monkeypatch.context() as few:
        few.setattr(samples, "_sampled", lambda job: 100)
        graph = tonari.build_graph(points, 5, tmp_path / "graph", method="clusters", recall=0.9)
    check_built(graph, points)
    (for_truth,) = read["sample"]
    assert 100 < for_truth <= 200
    assert "truth" not in read
    *whole, last = read["centres"]
    assert whole == [400]  # as many as a shard has
    assert last <= 200
