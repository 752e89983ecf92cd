"""The work of a run, counted by its plan."""

from __future__ import annotations

import dataclasses

import pytest

from tests.helpers import plans
from tonari.nn_descent.driver import expected_work, round_work, start_work

PLAN = plans.descent(10_000, 16, 10)


def test_a_random_start_compares_nothing() -> None:
    assert start_work(dataclasses.replace(PLAN, start="random")) == 0
    clusters = dataclasses.replace(PLAN, start="clusters", n_clusters=100, n_probe=3)
    assert start_work(clusters) == 100 + 3 * 100  # centres, and the points of three clusters


def test_a_round_compares_lists_and_candidates_up_to_the_width() -> None:
    narrow = dataclasses.replace(PLAN, list_size=12, reverse=5, n_hubs=7, neighbors_per_hub=3, width=10)
    assert round_work(narrow) == 12 + 10
    assert round_work(dataclasses.replace(narrow, width=1000)) == 12 + 5 + (7 + 5) * 3


def test_a_usual_run_is_a_start_its_light_rounds_and_a_whole_one() -> None:
    for rounds in (0, 1, 4):
        plan = dataclasses.replace(PLAN, light_rounds=rounds)
        assert expected_work(plan) == pytest.approx(
            start_work(plan) + rounds * round_work(plan.light) + round_work(plan)
        )
