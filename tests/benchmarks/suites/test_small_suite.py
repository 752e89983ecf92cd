"""Small searches: rows of tonari and of each peer, and a wrong answer of either is not timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.proof import WrongAnswer
from benchmarks.suites import small
from tests.helpers.bench_checks import a_run
from tonari.metrics.reference import brute

CASES = {case.name: case for case in small.SUITE.cases if case.device == "cpu"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(small, "LOOP_SECONDS", 0.0)
    return a_run()


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_rows_of_everyone(name: str, run: Any) -> None:
    case = CASES[name]
    small.search(run, replace(case, n=min(case.n, 400)))
    who = [row["who"] for row in run.rows]
    assert who[0] == "tonari"
    assert {"cKDTree", "sklearn"} <= set(who)
    assert "pykdtree" not in who or case.d <= small.PYKDTREE_COLUMNS
    assert all(row["seconds_median"] > 0 for row in run.rows)
    assert run.rows[0]["proved"] == case.m
    held = {row["bar_on"]: row["value"] for row in run.rows if row.get("bar_on")}
    assert set(held) <= {bar.on for bar in case.bars}
    for row in run.rows:
        if row["who"] in held:
            assert held[row["who"]] == row["ratio"]


def test_a_wrong_answer_is_not_timed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = run.tonari.search

    def wrong(*given: Any, **more: Any) -> Any:
        found = right(*given, **more)
        return found._replace(indices=found.indices[:, ::-1].copy())

    monkeypatch.setattr(run.tonari, "search", wrong)
    with pytest.raises(WrongAnswer, match="tonari: index of row 0"):
        small.search(run, CASES["search-1x1000x3"])
    assert not run.rows


def test_a_peer_that_answers_something_else_is_refused() -> None:
    points = np.eye(4, dtype=np.float32)
    truth = brute(points, points, 2)
    small.check_agreement("faiss", (truth.distances**2, truth.indices), truth)
    small.check_agreement("cKDTree", truth, truth)
    with pytest.raises(ValueError, match="cKDTree found other distances"):
        small.check_agreement("cKDTree", (truth.distances**2, truth.indices), truth)
