"""Arguments of other libraries, translated into those of tonari."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tonari.compat.arguments import leave_out, number_of, numbers_of, threads_of
from tonari.core.errors import Unsupported


@pytest.mark.parametrize(("value", "default"), [(0, 0.0), (0.0, 0.0), (None, None), ("a", "a"), (np.float32(0), 0.0)])
def test_the_default_may_be_given(value: Any, default: Any) -> None:
    leave_out(value, default, "eps", "answers are exact")


@pytest.mark.parametrize(
    ("value", "default"), [(0.1, 0.0), (False, 0.0), (None, 0.0), (0, None), ("b", "a"), (np.zeros(2), 0.0), ([], None)]
)
def test_anything_else_is_refused(value: Any, default: Any) -> None:
    with pytest.raises(Unsupported, match=r"^eps=.*: is not supported, as answers are exact; leave it out"):
        leave_out(value, default, "eps", "answers are exact")


def test_numbers_may_be_infinite_but_not_less_than_the_least() -> None:
    assert [number_of(value, "r") for value in (1, -2.5, math.inf, np.float32(0.5))] == [1.0, -2.5, math.inf, 0.5]
    assert number_of(0, "r", least=0.0) == 0.0
    for value, message in ((math.nan, "r=nan: expected a number$"), (-1e-9, "expected a number of at least 0$")):
        with pytest.raises(ValueError, match=message):
            number_of(value, "r", least=-math.inf if math.isnan(value) else 0.0)
    for value in (True, "1", None, [1]):
        with pytest.raises(TypeError, match="expected a number, got"):
            number_of(value, "r")


def test_workers_are_threads() -> None:
    assert [threads_of(value, "workers") for value in (-1, 1, np.int64(7))] == [None, 1, 7]
    for value in (0, -2):
        with pytest.raises(ValueError, match=f"workers={value}: expected -1 for all processors"):
            threads_of(value, "workers")


def test_real_numbers_of_any_dtype() -> None:
    for dtype in ("bool", "int8", "uint64", "float16", "float64"):
        assert numbers_of(np.ones(3, dtype), "x", "(n,)").dtype == dtype
    for x, error in (
        (np.array(["a"]), TypeError),
        (np.array([1j]), TypeError),
        ([[1], [2, 3]], (TypeError, ValueError)),
    ):
        with pytest.raises(error, match="x: "):
            numbers_of(x, "x", "(n,)")
