"""Fields and methods that the plans of all methods share."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import tonari
from tonari.core.plan import shown
from tonari.metrics.problem import make_problem

PLAN = tonari.plan(1000, 10, 16, 5, threads=2)


def test_memory_is_the_sum_of_its_parts() -> None:
    parts = [value for name, value in vars(PLAN).items() if name.endswith("_bytes")]
    assert PLAN.total_bytes == sum(parts) > 0
    assert PLAN.as_dict()["total_bytes"] == PLAN.total_bytes
    json.dumps(PLAN.as_dict())


@pytest.mark.parametrize(
    "other", [{"n": 999}, {"m": 11}, {"d": 17}, {"k": 6}, {"metric": "l1"}, {"dtype": "float64"}], ids=str
)
def test_a_plan_serves_its_own_problem_alone(other: dict[str, Any]) -> None:
    problem = make_problem(1000, 10, 16, 5, dtype="float32", metric="euclidean", threads=2)
    assert PLAN.for_problem(problem) is PLAN
    ((name, value),) = other.items()
    ours = getattr(PLAN, name)
    with pytest.raises(ValueError, match=f"made for {name}={ours!r}, but this search has {name}={value!r}"):
        PLAN.for_problem(dataclasses.replace(problem, **other))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("packed_bytes", 3 << 20, "3.0 MiB"),
        ("seconds", 0.012345, "0.0123"),
        ("devices", (), "-"),
        ("isa", "", "-"),
        ("precisions", ("int8", "float32"), "int8 > float32"),
        ("n", 1234567, "1,234,567"),
        ("resident", True, "True"),
        ("method", "exact", "exact"),
    ],
)
def test_fields_are_shown_to_people(name: str, value: Any, text: str) -> None:
    assert shown(name, value) == text


def test_a_table_has_a_line_for_each_field() -> None:
    lines = str(PLAN).splitlines()
    assert [line.split()[0] for line in lines] == list(PLAN.as_dict())
    assert PLAN._repr_html_().count("<tr>") == len(lines)
