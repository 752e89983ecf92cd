"""Predictions by a radius hold one block of lists in memory at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from tests.helpers.radius_estimators import peak_of
from tonari import estimators
from tonari.core.errors import BudgetExceeded

MEMORY = 12_000_000


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("queries", ["new", "fitted"])
def test_memory_is_never_exceeded(weights: str, queries: str) -> None:
    rng = np.random.default_rng(0)
    rows, y = rng.random((4_000, 2)), rng.permutation(np.repeat(np.arange(2_000), 2))
    asked = rng.random((3_000, 2)) if queries == "new" else None
    given: dict[str, Any] = {"radius": 0.15, "weights": weights, "n_jobs": 1}
    models: list[tuple[Any, Any, Any]] = [
        (estimators.RadiusNeighborsClassifier, y, "predict"),
        (estimators.RadiusNeighborsClassifier, y % 40, "predict_proba"),
        (estimators.RadiusNeighborsRegressor, rng.random((4_000, 3)), "predict"),
    ]
    for kind, values, name in models:
        whole = getattr(kind(**given).fit(rows, values), name)(asked)
        predict = getattr(kind(**given, memory=MEMORY).fit(rows, values), name)
        predict(rows[:1])
        assert peak_of(lambda predict=predict: predict(asked)) < 2 * whole.nbytes + MEMORY  # its parts, and the result
        np.testing.assert_array_equal(predict(asked), whole)


def test_too_little_memory_is_refused() -> None:
    rows = np.random.default_rng(0).random((4_000, 2))
    made = estimators.RadiusNeighborsRegressor(radius=0.9, memory=400_000)
    with pytest.raises(BudgetExceeded, match="memory=400000"):
        made.fit(rows, rows[:, 0]).predict(rows)
