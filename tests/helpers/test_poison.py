"""In tests, uninitialized memory of tonari contains NaN or a sentinel; memory of other libraries does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import poison
from tests.helpers.devices import HAS_TORCH, needs_torch

if HAS_TORCH:
    import torch


def as_tonari(code: str) -> Any:
    """Evaluate an expression as if a module of tonari contained it."""
    names = {"__name__": "tonari.anything", "np": np} | ({"torch": torch} if HAS_TORCH else {})
    return eval(code, names)


@pytest.mark.parametrize(
    "code", ["np.empty((2, 3), np.float32)", "np.empty(6)", "np.empty_like(np.ones((2, 3), np.float16))"]
)
def test_numbers_of_numpy_are_nan(code: str) -> None:
    assert np.isnan(as_tonari(code)).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_of_numpy_are_no_index(dtype: str) -> None:
    made = as_tonari(f"np.empty(5, '{dtype}')")
    assert made.tobytes() == bytes([poison.BYTE]) * made.nbytes
    assert dtype == "uint64" or dtype == "uint8" or (made < 0).all()


def test_truth_values_are_true() -> None:
    assert as_tonari("np.empty(5, bool)").all()


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_numbers_of_torch_are_nan(dtype: str) -> None:
    for code in (
        f"torch.empty((2, 3), dtype=torch.{dtype})",
        f"torch.empty_like(torch.ones((2, 3), dtype=torch.{dtype}))",
        f"torch.ones(1, dtype=torch.{dtype}).new_empty((2, 3))",
    ):
        assert torch.isnan(as_tonari(code)).all(), code


@needs_torch
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_of_torch_are_no_index(dtype: str) -> None:
    made = as_tonari(f"torch.empty((2, 3), dtype=torch.{dtype})")
    assert bytes(made.numpy().tobytes()) == bytes([1 if dtype == "bool" else poison.BYTE]) * made.nbytes


def test_others_get_what_they_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(poison, "poison_array", called.append)
    assert np.empty(3).shape == (3,)
    assert not called
