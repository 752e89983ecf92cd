"""The plan is pure, frozen and readable."""

from __future__ import annotations

import dataclasses
import json

import pytest

import tonari
from tests.helpers import plans


def test_same_arguments_same_plan() -> None:
    first, second = (tonari.plan(10_000, 500, 32, 10, threads=2) for _ in range(2))
    assert first == second
    assert first != tonari.plan(10_000, 500, 32, 11, threads=2)


def test_a_plan_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        tonari.plan(100, 10, 4, 2).k = 3  # type: ignore[misc]


def test_a_plan_survives_json_and_reads_as_a_table() -> None:
    plan = tonari.plan(10_000, 500, 32, 10, threads=2)
    fields = json.loads(json.dumps(plan.as_dict()))
    assert fields["precisions"] == list(plan.precisions)
    assert fields["total_bytes"] == plan.total_bytes == plan.packed_bytes + plan.working_bytes + plan.output_bytes
    shown = dict(line.split(maxsplit=1) for line in str(plan).splitlines())
    assert set(shown) == set(fields)
    assert shown["n"] == "10,000"
    assert shown["isa"] == plan.isa


def test_a_self_join_has_as_many_queries_as_points() -> None:
    with pytest.raises(ValueError, match="as many queries as points, got m=9 and n=10"):
        plans.problem(10, 9, 2, 3, self_join=True)
    assert plans.problem(10, 10, 2, 9, self_join=True).k == 9
    with pytest.raises(ValueError, match="k=10: the largest k is 9"):
        plans.problem(10, 10, 2, 10, self_join=True)
