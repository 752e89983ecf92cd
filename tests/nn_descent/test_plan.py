"""The plan of NN-Descent: fields that callers may set, and refusals with their reasons."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

import tonari
from tests.helpers import plans
from tonari.nn_descent.plan import DescentPlan, check_recall, check_seed

GIB = 1 << 30


def made(n: int = 100_000, d: int = 32, k: int = 10, **given: Any) -> DescentPlan:
    return plans.descent(n, d, k, **{"dtype": "float32", "metric": "euclidean", "threads": 2} | given)


def on_cuda(n: int = 10**6, d: int = 128, k: int = 10, **given: Any) -> DescentPlan:
    usual = {"dtype": "float32", "metric": "euclidean", "devices": ("cuda:0",), "free_bytes": 70 * GIB}
    return plans.descent(n, d, k, **usual | given)


def test_overrides_are_taken() -> None:
    given = {
        "list_size": 40,
        "start": "random",
        "n_clusters": 7,
        "n_probe": 3,
        "train_per_cluster": 5,
        "kmeans_iters": 0,
        "n_hubs": 8,
        "reverse": 0,
        "neighbors_per_hub": 9,
        "width": 11,
        "rounds": 2,
        "sample": 77,
        "block": 13,
        "isa": "generic",
    }
    plan = made(**given)
    assert {name: getattr(plan, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"recall": 1.0}, r"recall=1.0: expected a number between 0 and 1.*method='exact'"),
        ({"recall": 0}, "recall=0: expected"),
        ({"recall": "0.9"}, "recall='0.9': expected"),
        ({"recall": True}, "recall=True: expected"),
        ({"recall": float("nan")}, "recall=nan: expected"),
        ({"seed": -1}, "seed=-1: expected a whole number from 0 to 4294967295"),
        ({"seed": 1.5}, "seed=1.5: expected"),
        ({"seed": 2**32}, "seed=4294967296"),
        ({"list_size": 9}, "list_size=9: a list holds at least its k=10 neighbours, and at most n - 1 = 99999"),
        ({"list_size": 100_000}, "list_size=100000: a list"),
        ({"list_size": 20.0}, "list_size must be a whole number of at least 1, got 20.0"),
        ({"n_hubs": 33}, "n_hubs=33: at most 32, since a list has no more neighbours"),
        ({"neighbors_per_hub": 33}, "neighbors_per_hub=33: at most 32"),
        ({"n_clusters": 100_001}, "n_clusters=100001: at most 100000, since there are no more points"),
        ({"n_clusters": 2, "n_probe": 3}, "n_probe=3: at most 2, since there are no more clusters"),
        ({"sample": 100_001}, "sample=100001: at most 100000"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1"),
        ({"start": "graphs"}, "start='graphs': expected one of 'clusters', 'random', 'graph'"),
        ({"lists": 3}, "cannot override lists; these can be: block, isa, kmeans_iters"),
        ({"isa": "sse"}, "cannot run the instruction set 'sse'"),
        ({"k": 100_000}, "k=100000"),
        ({"n": 2**30 + 1}, "n=1073741825: method='nn-descent' takes up to 1073741824 points; use tonari.build_graph"),
        ({"metric": "mahalanobis"}, "metric='mahalanobis' compares changed rows"),
        ({"dtype": "int64"}, "dtype int64 is not supported"),
    ],
)
def test_what_cannot_work_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**given)


def test_recall_and_seed_come_back_plain() -> None:
    import numpy as np

    assert [type(check_recall(np.float32(0.5))), type(check_seed(np.int64(7)))] == [float, int]


def test_light_rounds_have_half_the_numbers() -> None:
    assert (made().light_rounds, on_cuda().light_rounds, made(light_rounds=0).light_rounds) == (1, 0, 0)
    plan = made(n_hubs=15, reverse=1, neighbors_per_hub=8)
    assert plan.light == dataclasses.replace(plan, n_hubs=8, reverse=1, neighbors_per_hub=4)
    with pytest.raises(ValueError, match="light_rounds"):
        made(light_rounds=-1)


def test_it_is_frozen_and_shows_itself() -> None:
    plan = made()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.recall = 0.5  # type: ignore[misc]
    assert json.loads(json.dumps(plan.as_dict()))["method"] == "nn-descent"
    assert re.search(r"list_size +32\n", str(plan))


def test_tonari_plan_makes_it() -> None:
    given: dict[str, Any] = {"method": "nn-descent", "recall": 0.95, "seed": 3, "threads": 2, "rounds": 5}
    assert tonari.plan(1000, 1000, 8, 5, **given) == plans.descent(
        1000, 8, 5, dtype="float32", metric="euclidean", recall=0.95, seed=3, threads=2, rounds=5
    )
    with pytest.raises(ValueError, match="builds a graph, which has as many queries as points: m=10, n=1000"):
        tonari.plan(1000, 10, 8, 5, **given)
    for method in ("exact", "auto", "kdtree"):
        with pytest.raises(ValueError, match=f"recall is for method='nn-descent', got method='{method}'"):
            tonari.plan(1000, 1000, 8, 5, method=method, recall=0.9)
        with pytest.raises(ValueError, match="seed is for method='nn-descent'"):
            tonari.plan(1000, 1000, 8, 5, method=method, seed=0)
