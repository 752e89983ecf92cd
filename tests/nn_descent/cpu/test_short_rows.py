"""Contracted copies of wide rows for the start of NN-Descent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.descent import plan_for
from tests.nn_descent.cpu.test_init import known_rows
from tonari.core.process.workers import Workers
from tonari.nn_descent import driver, tuning
from tonari.nn_descent.backend import Round
from tonari.nn_descent.cpu.backend import CpuBackend
from tonari.nn_descent.cpu.short_rows import short_rows


def test_wide_rows_are_compared_in_as_few_columns_as_rank_their_neighbours() -> None:
    rng = np.random.default_rng(0)
    flat = (rng.normal(size=(2000, 8)) @ rng.normal(size=(8, 300))).astype(np.float32) + 100
    plan = plan_for(flat, 8, recall=0.95)
    short = short_rows(flat, plan, known_rows(flat, 8), Workers(2))
    assert short is not None
    assert short.rows.shape == (2000, 32)
    rows = flat[:50].astype(np.float64)
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    contracted = np.linalg.norm(short.rows[:50, None].astype(np.float64) - short.rows[None, :50], axis=2)
    scale = np.median(contracted[0, 1:] / distances[0, 1:])
    np.testing.assert_allclose(contracted, scale * distances, rtol=0.02, atol=1e-4 * distances.max() * scale)
    isotropic = checks.gaussian(2000, 300)
    assert short_rows(isotropic, plan, known_rows(isotropic, 8), Workers(1)) is None


def test_a_wrong_guess_that_a_round_is_the_last_one_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    flat = (rng.normal(size=(1500, 12)) @ rng.normal(size=(12, 200))).astype(np.float32)
    plan = plan_for(flat, 8, recall=0.99)
    monkeypatch.setattr(driver, "_why_end", lambda *given: "two rounds" if len(given[2]) == 2 else "")
    guessed: list[bool] = []
    answers = []

    class Watched(CpuBackend):
        def round(self, *given: Any, **named: Any) -> Round:
            made = super().round(*given, **named)
            guessed.append(made.entries is None)
            return made

    for left in (np.inf, 0.0):  # no round is expected to be the last one, or each
        monkeypatch.setattr(tuning, "LEFT_BY_ROUND", left)
        answers.append(driver.build(Watched(flat, plan), plan))
    (found, report), (same, of_same) = answers
    assert guessed == [False, False, True, False, False]
    assert_same_neighbors(same, found)
    assert (of_same.rounds, of_same.estimate) == (report.rounds, report.estimate)
