"""A decision has the seconds of its plan, and patience only where there is a fallback."""

from __future__ import annotations

import dataclasses

import pytest

from tests.helpers import plans
from tonari.methods.decision import Decision, by_plan
from tonari.methods.registry import method_for

EXACT = method_for("exact", "cpu")


def test_patience_is_twice_the_time_of_the_fallback() -> None:
    plan = dataclasses.replace(plans.exact(100, 100, 3, 2), seconds=0.5)
    fallback = Decision(EXACT, plan, seconds=3.0)
    assert by_plan(EXACT, plan).patience is None
    assert by_plan(EXACT, plan)._replace(instead=fallback).patience == pytest.approx(2 * 3.0 / 0.5)


def test_a_plan_brings_its_own_seconds() -> None:
    plan = plans.exact(100, 100, 3, 2)
    made = by_plan(EXACT, plan, "prepared", "because")
    assert made == Decision(EXACT, plan, "prepared", plan.seconds, "because")
    assert not made.by_data
