"""NN-Descent as a method: lists are on the device of the points, and a graph of the points can be the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import plans
from tests.helpers.checks import gaussian
from tests.helpers.devices import needs_torch
from tonari.core.results.neighbors import Neighbors
from tonari.metrics.reference import brute
from tonari.nn_descent import method
from tonari.nn_descent.method import NnDescentOnCpu, beside_rows

POINTS = gaussian(200, 4)
TRUTH = brute(POINTS, POINTS, 5, self_ids=np.arange(200))


def test_a_graph_of_the_points_is_where_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    build = method.build

    def watched(backend: Any, plan: Any, progress: Any, begin: Any, *, patience: float | None) -> Any:
        begun.append((None if begin is None else begin(), patience))
        return build(backend, plan, progress, begin, patience=patience)

    monkeypatch.setattr(method, "build", watched)
    descent, plan = NnDescentOnCpu(), plans.descent(200, 4, 5, threads=1, seed=3)
    made = descent.build_graph(POINTS, plan, start=TRUTH.indices, patience=2.0)
    assert made.seed == 3
    assert made.report.reached
    assert (made.found.indices == TRUTH.indices).mean() > 0.99
    descent.build_graph(POINTS, plan)
    (entries, patience), nothing = begun
    assert (entries.shape, patience) == ((200, plan.list_size), 2.0)
    assert nothing == (None, None)
    assert not descent.exact


def test_what_it_cannot_build_is_refused() -> None:
    descent = NnDescentOnCpu()
    assert descent.refuses(plans.problem(200, 200, 4, 5, self_join=True)) is None
    assert descent.refuses(plans.problem(200, 200, 4, 5, self_join=True, dtype="uint8", metric="hamming"))


@needs_torch
def test_lists_are_beside_the_points() -> None:
    import torch

    there = Neighbors(*map(torch.from_numpy, TRUTH))
    assert beside_rows(there, torch.from_numpy(POINTS)) is there
    here = beside_rows(there, POINTS)
    assert all(isinstance(part, np.ndarray) for part in here)
    assert here.indices.tobytes() == TRUTH.indices.tobytes()
