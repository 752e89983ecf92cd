"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from tonari import estimators


@pytest.mark.filterwarnings("ignore:n_neighbors .* is greater than the total number of samples")
@parametrize_with_checks([getattr(estimators, name)() for name in estimators.__all__])
def test_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)
