"""Every method is found by its name and device, and unknown names are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import plans
from tests.helpers.devices import HAS_TORCH
from tonari.core.method import SearchMethod
from tonari.methods import registry
from tonari.methods.registry import METHODS, NAMES, check_search_method, is_exact, is_search, method_for, overrides_of

DEVICES = ("cpu", "cuda") if HAS_TORCH else ("cpu",)


def test_each_method_says_its_own_name_and_device() -> None:
    for device in DEVICES:
        for name in NAMES:
            method = method_for(name, device)
            assert (method.name, method.device) == (name, device)
            assert method is method_for(name, device)
            assert isinstance(method, SearchMethod) == is_search(name) == (name != "nn-descent")
            assert method.exact == is_exact(name) == (name != "nn-descent")


def test_a_plan_that_cannot_be_set_so_names_what_can() -> None:
    for name in NAMES:
        own: dict[str, dict[str, Any]] = {
            "bits": {"dtype": "uint8", "metric": "hamming"},
            "missing": {"metric": "nan_euclidean"},
        }
        problem = plans.problem(500, 500, 4, 3, self_join=name == "nn-descent", **own.get(name, {}))
        assert method_for(name, "cpu").plan(problem).method == name
        with pytest.raises(
            ValueError, match="cannot override nonsense; these can be: " + ", ".join(sorted(overrides_of(name, "cpu")))
        ):
            method_for(name, "cpu").plan(problem, nonsense=1)


def test_a_name_that_no_method_has_is_refused() -> None:
    for name in ["hnsw", "Exact", None, ["exact"]]:
        with pytest.raises(ValueError, match=r"unknown method .*expected one of 'auto', 'exact'"):
            check_search_method(name)


def test_a_method_of_graphs_answers_no_queries() -> None:
    with pytest.raises(ValueError, match=r"builds graphs: use tonari\.knn_graph, or search with 'auto' or 'exact'"):
        check_search_method("nn-descent")
    for name in METHODS:
        if name != "nn-descent":
            check_search_method(name)
    assert registry.by_force("jaccard") == "bits"
    assert registry.by_force("l1") == "exact"
