"""Errors that callers can distinguish."""

from __future__ import annotations

import pickle

import pytest

import tonari
from tonari.core.errors import BudgetExceeded, Unsupported


def test_those_who_catch_values_catch_both() -> None:
    assert issubclass(Unsupported, ValueError)
    assert issubclass(BudgetExceeded, ValueError)


def test_a_budget_that_is_too_small_names_one_that_is_not() -> None:
    with pytest.raises(BudgetExceeded, match="at least") as caught:
        tonari.plan(100_000, 10, 64, 5, memory=1000, method="kdtree")
    least = caught.value.least
    assert least is not None
    assert least > 1000
    assert tonari.plan(100_000, 10, 64, 5, memory=least, method="kdtree").total_bytes <= least


def test_the_least_budget_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(BudgetExceeded("too little", least=7)))
    assert (str(error), error.least) == ("too little", 7)
