"""Votes and means of neighbours: winners, memory, and invalid weights."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")


from tests.helpers import checks
from tonari import estimators
from tonari.core.results.neighbors import Neighbors
from tonari.estimators.predictions import votes

X, NEW = checks.gaussian(120, 4, dtype=np.float64), checks.gaussian(30, 4, 1, np.float64)
NEW[:5] = X[:5]  # at distance 0 of a fitted row


def _y(kind: str, outputs: int) -> Any:
    rng = np.random.default_rng(2)
    values = rng.standard_normal((120, outputs)) if kind == "values" else rng.integers(3, size=(120, outputs))
    made = np.array(["ape", "bee", "cat"])[values] if kind == "names" else values
    return made[:, 0] if outputs == 1 else made


@pytest.mark.parametrize("weights", [None, "positive", "equal", "negative", "infinite"])
@pytest.mark.parametrize("classes", [2, 9, 5_000])
@pytest.mark.parametrize("memory", [None, 64 * 5_000 * 7])
def test_the_winner_has_most_votes(weights: str | None, classes: int, memory: int | None) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=400)
    found = Neighbors(np.zeros((333, 5)), rng.integers(400, size=(333, 5)))
    given = {"positive": rng.random((333, 5)), "equal": np.full((333, 5), 0.1), "negative": rng.random((333, 5)) - 0.5}
    given["infinite"] = np.where(given["positive"] < 0.2, np.inf, 1.0)
    with np.errstate(invalid="ignore"):
        own = None if weights is None else given[weights]
        expected = votes.shares(labels, found, own, classes, None).argmax(axis=1)
        np.testing.assert_array_equal(votes.winners(labels, found, own, classes, memory), expected)


@pytest.mark.parametrize("outputs", [1, 120])
def test_predictions_hold_a_block_at_a_time(outputs: int) -> None:
    rng = np.random.default_rng(0)
    rows, asked = rng.random((4_000, 2)), rng.random((3_000, 2))
    y = rng.permutation(np.repeat(np.arange(2_000), 2))
    models: list[Any] = [estimators.KNeighborsClassifier(memory="8MB").fit(rows, y)]
    models += [estimators.KNeighborsRegressor(memory="8MB").fit(rows, rng.random((4_000, outputs)))]
    for model in models:
        model.predict(asked[:1])
        tracemalloc.start()
        made = model.predict(asked)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < made.nbytes + 8_000_000
    tracemalloc.start()
    made = models[0].predict_proba(asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < made.nbytes + 8_000_000


def test_weights_that_make_no_sense_are_refused() -> None:
    for weights, message in (
        (lambda d: np.zeros_like(d), "only zeros for row 0"),
        (lambda d: (np.arange(len(d)) != 7)[:, None] * np.ones_like(d), "only zeros for row 7"),
        (lambda d: d[:, 0], r"shape \(30,\) for distances of shape \(30, 5\)"),
    ):
        for cls in (estimators.KNeighborsClassifier, estimators.KNeighborsRegressor):
            with pytest.raises(ValueError, match=message):
                cls(weights=weights).fit(X, _y("numbers", 1)).predict(NEW)
