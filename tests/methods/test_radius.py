"""The choice of the method for radius searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA, needs_torch
from tonari.methods import radius as choice
from tonari.methods.tuning import LEAST_POINTS


def test_auto_takes_a_tree_where_neighbours_are_few_and_brute_force_where_they_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[str] = []
    decide = choice.by_plan
    monkeypatch.setattr(choice, "by_plan", lambda method, *rest: (taken.append(method.name), decide(method, *rest))[1])
    asked: list[int] = []
    choose = choice.choose
    monkeypatch.setattr(
        choice, "choose", lambda problem, *rest, **given: (asked.append(problem.k), choose(problem, *rest, **given))[1]
    )
    cloud = np.random.default_rng(0).random((100_000, 3)).astype(np.float32)
    counts = tonari.radius_count(cloud[:20_000], cloud, 0.02)
    assert counts.tolist() == tonari.radius_count(cloud[:20_000], cloud, 0.02, method="kdtree").tolist()
    assert len(asked) == 1
    assert 0.5 < asked[0] / counts.mean() < 2
    tonari.radius_count(checks.gaussian(20_000, 40)[:5000], checks.gaussian(20_000, 40), 3.0)
    tonari.radius_count(cloud[: LEAST_POINTS - 1], cloud[: LEAST_POINTS - 1], 0.02)
    assert taken == ["kdtree", "kdtree", "exact", "exact"]


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_a_look_at_tensors_is_kept_until_they_are_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    looks: list[int] = []

    def count(*_: Any) -> int:
        looks.append(1)
        return 5

    monkeypatch.setattr(choice, "_mean_count", count)
    monkeypatch.setattr(choice, "by_sizes", lambda *_: None)  # they have no influence
    x = torch.rand((40, 2), device="cuda" if HAS_CUDA else "cpu")

    def looked(rows: Any, radius: Any = 0.2, **given: Any) -> bool:
        before = len(looks)
        found = tonari.radius_graph(rows, radius, **given)
        assert (
            found.indices.tolist() == tonari.radius_graph(rows.cpu().numpy(), radius, method="exact").indices.tolist()
        )
        return len(looks) > before

    assert looked(x)
    assert not looked(x)
    assert not looked(x.view(40, 2))
    assert looked(x, 0.3)
    assert looked(x[:20])
    x[0] += 0.125
    assert looked(x)
    assert not looked(x)
    assert looked(x.clone())
    radii = np.full(40, 0.2)
    assert looked(x, radii)
    assert looked(x, radii)
    with torch.inference_mode():
        unversioned = torch.rand((40, 2), device=x.device)
    assert looked(unversioned)
    assert looked(unversioned)


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_memory_that_is_used_again_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    made = [torch.rand((40, 2)) for _ in range(2)]
    one = np.zeros(40, np.float32)[:1]
    limits = np.ndarray((40,), np.float32, one, 0, (0,))
    keys = [choice._memory_of(None, x, x, limits) for x in made]  # type: ignore[arg-type]
    choice._looks[keys[0][0]] = tuple(choice.weakref.ref(part) for part in keys[1][1]), "kdtree"
    monkeypatch.setattr(choice, "_mean_count", lambda *_: pytest.fail("looked"))
    with pytest.raises(pytest.fail.Exception, match="looked"):
        choice._by_look(None, made[0], made[0], limits, None)  # type: ignore[arg-type]
    choice._looks[keys[0][0]] = tuple(choice.weakref.ref(part) for part in keys[0][1]), "kdtree"
    assert choice._by_look(None, made[0], made[0], limits, None) == ("kdtree", None)  # type: ignore[arg-type]
