"""Rows that a precision level leaves unproved are searched without surplus copies of points, if there are any.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.helpers.checks import assert_same_neighbors
from tests.helpers.copies import D, K
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gpu_checks import DEVICE, on_host, plan_of, rows_of, tensors
from tonari.exact.cuda import tuning
from tonari.metrics.reference import brute

pytestmark = [needs_torch]
if HAS_TORCH:
    from tonari.exact.cuda import dispatch
    from tonari.exact.cuda.attempts.retries import without_copies as module
    from tonari.exact.cuda.routes.resident import search_resident


@pytest.mark.full  # takes ten seconds and more in the interpreter
@pytest.mark.parametrize(("left", "looks", "self_join"), [(2, 1, False), (3, 1, False), (4, 0, False), (2, 1, True)])
@pytest.mark.usefixtures("attempts")
def test_many_rows_that_are_not_proved_are_searched_without_copies(
    left: int, looks: int, self_join: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of nine rows have many copies of one point as neighbours; a retry does not prove them."""
    monkeypatch.setattr(tuning, "COPIES_LEFT", left)
    row = rows_of(1, D, seed=3)
    near = 2 * row * np.linspace(0.9, 1.1, 9, dtype=np.float32)[:, None]
    points = np.concatenate([near, np.repeat(row * 2, 150, 0), rows_of(8, D)])
    queries = points if self_join else near
    q, p = tensors(DEVICE, queries, points)
    q = p if self_join else q
    plan = plan_of(q, p, K, devices=(DEVICE,), self_join=self_join, group=8, width=1, precisions=("float16", "values"))
    plan = dataclasses.replace(plan, subsets=True)
    looked, real = [], module.numbers_of_first_copies
    monkeypatch.setattr(module, "numbers_of_first_copies", lambda *given: looked.append(given) or real(*given))
    with dispatch.on(plan.devices[0]):
        found, report = search_resident(q, dispatch.prepare(p, plan), plan, self_join=self_join, progress=False)
    own = np.arange(len(points)) if self_join else None
    assert_same_neighbors(on_host(found), brute(queries, points, K, self_ids=own), metric="euclidean")
    assert len(looked) == looks
    if not self_join:
        assert report.rows_by_precision.get("values", 0) == (0 if looks else 3)


@pytest.mark.usefixtures("attempts")
def test_without_copies_rows_climb_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are near to each other, but no copies: one look finds nothing, and all values are compared."""
    monkeypatch.setattr(tuning, "COPIES_LEFT", 1)
    points = np.full((150, D), 8, np.float32)
    points[:, 0] += np.float32(2.0**-20) * np.arange(150)
    points = np.concatenate([points, -points[:1]])
    q, p = tensors(DEVICE, points[[75]], points)
    plan = plan_of(q, p, K, devices=(DEVICE,), group=8, width=1, precisions=("float16", "split", "values"))
    plan = dataclasses.replace(plan, subsets=True)
    looked, real = [], module.numbers_of_first_copies
    monkeypatch.setattr(module, "numbers_of_first_copies", lambda *given: looked.append(given) or real(*given))
    with dispatch.on(plan.devices[0]):
        found, report = search_resident(q, dispatch.prepare(p, plan), plan, progress=False)
    assert len(looked) == 1
    assert report.rows_by_precision == {"values": 1}
    assert_same_neighbors(on_host(found), brute(points[[75]], points, K), metric="euclidean")
