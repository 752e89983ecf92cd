"""Problems: their device, and the dtype of their answers."""

from __future__ import annotations

import dataclasses

import pytest

from tonari.core.problem import Problem

PROBLEM = Problem(n=10, m=2, d=3, k=1, dtype="float32", query_dtype="float32", metric="euclidean")


@pytest.mark.parametrize(
    ("points", "queries", "expected"),
    [
        ("float32", "float32", "float32"),
        ("float64", "float32", "float64"),
        ("uint8", "float64", "float64"),
        ("uint8", "int8", "float32"),
        ("bfloat16", "float16", "float32"),
    ],
)
def test_distances_are_as_wide_as_the_wider_side(points: str, queries: str, expected: str) -> None:
    assert dataclasses.replace(PROBLEM, dtype=points, query_dtype=queries).value_dtype == expected


def test_it_is_on_cuda_if_there_are_devices() -> None:
    assert PROBLEM.device == "cpu"
    assert dataclasses.replace(PROBLEM, devices=("cuda:0", "cuda:1")).device == "cuda"


def test_equal_problems_share_a_plan() -> None:
    assert hash(PROBLEM) == hash(dataclasses.replace(PROBLEM))
    with pytest.raises(dataclasses.FrozenInstanceError):
        PROBLEM.k = 2  # type: ignore[misc]
