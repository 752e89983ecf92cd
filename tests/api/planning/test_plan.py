"""Plans by method names: the plan of "auto", self-joins, and arguments of other methods."""

from __future__ import annotations

from typing import Any

import pytest

import tonari


def test_the_method_is_that_of_the_name() -> None:
    cases: list[Any] = [
        ({}, "exact"),
        ({"method": "auto", "metric": "hamming", "dtype": "uint8"}, "bits"),
        ({"method": "kdtree"}, "kdtree"),
        ({"method": "nn-descent"}, "nn-descent"),
    ]
    for given, method in cases:
        assert tonari.plan(500, 500, 4, 3, **given).method == method


def test_a_plan_of_a_graph_method_is_of_a_graph() -> None:
    assert tonari.plan(500, 500, 4, 499, method="nn-descent").k == 499
    with pytest.raises(ValueError, match="k=500: the largest k is 499"):
        tonari.plan(500, 500, 4, 500, method="nn-descent")
    assert tonari.plan(500, 500, 4, 500).k == 500  # a search, in which each point finds itself
    with pytest.raises(ValueError, match="k=500: the largest k is 499"):
        tonari.plan(500, 500, 4, 500, self_join=True)


def test_what_only_approximate_graphs_take_is_refused() -> None:
    for method in ["auto", "exact", "kdtree"]:
        for name in ["recall", "seed"]:
            with pytest.raises(ValueError, match=f"{name} is for method='nn-descent', got method='{method}'"):
                tonari.plan(500, 500, 4, 3, method=method, **{name: 0})


def test_recall_and_seed_are_in_the_plan_of_a_graph() -> None:
    plan: Any = tonari.plan(500, 500, 4, 3, method="nn-descent", recall=0.5, seed=7)
    assert (plan.recall, plan.seed) == (0.5, 7)
