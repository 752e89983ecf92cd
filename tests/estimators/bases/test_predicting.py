"""The classifier and the regressor have the same parameters, with the same defaults."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("sklearn")

from tonari.estimators import KNeighborsClassifier, KNeighborsRegressor
from tonari.estimators.bases.predicting import Predicting


def test_parameters_are_kept_as_they_are_given() -> None:
    parameters = inspect.signature(Predicting.__init__).parameters
    names = [name for name in parameters if name != "self"]
    given = {name: object() for name in names}
    for kind in (KNeighborsClassifier, KNeighborsRegressor):
        assert list(inspect.signature(kind).parameters) == names
        made = kind(**given)
        assert {name: getattr(made, name) for name in names} == given
        assert made.get_params(deep=False) == given
        plain = kind().get_params(deep=False)
        assert plain == {name: parameters[name].default for name in names}
