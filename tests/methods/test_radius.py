"""Which method finds what is within a radius."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.methods.tuning import LEAST_POINTS


def test_auto_takes_a_tree_where_neighbours_are_few_and_brute_force_where_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tonari.methods import radius as module

    taken: list[str] = []
    decide = module.by_plan
    monkeypatch.setattr(module, "by_plan", lambda method, *rest: (taken.append(method.name), decide(method, *rest))[1])
    asked: list[int] = []
    choose = module.choose
    monkeypatch.setattr(
        module, "choose", lambda problem, *rest, **given: (asked.append(problem.k), choose(problem, *rest, **given))[1]
    )
    cloud = np.random.default_rng(0).random((100_000, 3)).astype(np.float32)
    counts = tonari.radius_count(cloud[:20_000], cloud, 0.02)
    assert counts.tolist() == tonari.radius_count(cloud[:20_000], cloud, 0.02, method="kdtree").tolist()
    assert len(asked) == 1
    assert 0.5 < asked[0] / counts.mean() < 2
    tonari.radius_count(checks.gaussian(20_000, 40)[:5000], checks.gaussian(20_000, 40), 3.0)
    tonari.radius_count(cloud[: LEAST_POINTS - 1], cloud[: LEAST_POINTS - 1], 0.02)
    assert taken == ["kdtree", "kdtree", "exact", "exact"]
