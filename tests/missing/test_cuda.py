"""Rows with missing values on CUDA are refused, with the way out."""

from __future__ import annotations

import dataclasses

import pytest

from tests.helpers import plans
from tonari.core.errors import Unsupported
from tonari.missing.cuda.method import MissingOnCuda


def test_every_problem_is_refused() -> None:
    problem = plans.problem(9, 9, 3, 1, dtype="float32", metric="nan_euclidean")
    problem = dataclasses.replace(problem, devices=("cuda:0",))
    assert "use device='cpu'" in str(MissingOnCuda().refuses(problem))
    with pytest.raises(Unsupported, match="runs on the CPU alone"):
        MissingOnCuda().plan(problem)
    for name in ("prepare", "search"):
        with pytest.raises(NotImplementedError):
            getattr(MissingOnCuda(), name)(*[None] * (2 if name == "prepare" else 3))
