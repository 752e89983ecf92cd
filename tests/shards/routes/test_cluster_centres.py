"""Centres of shards are trained independently of the search for true neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import Shuffled, built, by_executor, by_shards, clustered, lists
from tonari.shards.tasks import Job


def test_centres_are_trained_while_true_neighbours_are_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither needs the other, so two devices can share them."""
    by_shards(monkeypatch, 400)
    ran: list[list[str]] = []

    class Noted(Shuffled):
        def run(self, job: Job, given: Any, done: Any) -> None:
            ran.append([task.kind for task in given])
            super().run(job, given, done)

    points = clustered(1500)
    expected = built(points, 5, tmp_path, "clusters", recall=0.9)
    by_executor(monkeypatch, Noted(0, 2))
    graph = tonari.build_graph(points, 5, tmp_path / "other", method="clusters", recall=0.9)
    assert_same_neighbors(lists(graph), lists(expected))
    assert ran[:2] == [["sample"], ["means", *["truth"] * 4]]
    assert [set(kinds) for kinds in ran[2:]] == [
        {"centres"},
        {"members"},
        {"shard"},
        *[{"rows"}] * 2,
        {"recall"},
    ]
