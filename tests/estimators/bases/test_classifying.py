"""Both classifiers store classes in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

from sklearn.exceptions import DataConversionWarning

from tests.helpers import checks
from tonari import estimators

X = checks.gaussian(60, 3, dtype=np.float64)
KINDS = [estimators.KNeighborsClassifier, estimators.RadiusNeighborsClassifier]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_classes_is_one_output(kind: Any) -> None:
    y = np.arange(60) % 3
    with pytest.warns(DataConversionWarning, match="column-vector") as warned:
        made = kind().fit(X, y[:, None])
    assert warned[0].filename == __file__
    assert made.outputs_2d_ is False
    np.testing.assert_array_equal(made.classes_, np.arange(3))
    np.testing.assert_array_equal(made.predict(X), kind().fit(X, y).predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_no_classes(kind: Any) -> None:
    with pytest.raises(ValueError, match="Unknown label type"):
        kind().fit(X, X[:, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_share_of_right_classes(kind: Any) -> None:
    y = np.arange(60) % 3
    made = kind().fit(X, y)
    right = made.predict(X) == y
    assert made.score(X, y) == right.mean()
    weights = np.arange(60.0)
    assert made.score(X, y, sample_weight=weights) == pytest.approx((right * weights).sum() / weights.sum())
