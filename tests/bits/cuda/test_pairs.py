"""Blocks of queries and slabs of points cover each pair once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.bit_rows import few, noise
from tests.helpers.bits_on_cuda import DEVICE, check, plan_for
from tests.helpers.devices import needs_torch
from tests.helpers.gpu_checks import tensors
from tonari.metrics import BIT_METRICS

pytestmark = [needs_torch]


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize(("query_block", "point_slab"), [(2, 9), (5, 10), (1, 14)])
@pytest.mark.parametrize("where", ["host", "device", "streamed"])
def test_no_split_changes_an_answer(metric: str, query_block: int, point_slab: int, where: str) -> None:
    queries, points = few(5, 4, 1), few(30, 4)
    given: dict[str, Any] = {"query_block": query_block, "point_slab": point_slab}
    if where == "device":
        queries, points = tensors(DEVICE, queries, points)
    if where == "streamed":  # enough for everything except the points
        given["memory"] = plan_for(queries, points, 12, metric, **given).total_bytes - 1
    assert check(queries, points, 12, metric, **given).streamed == (where == "streamed")


def test_progress_counts_all_pairs() -> None:
    seen: list[tuple[int, int]] = []
    check(noise(5, 2, 1), noise(30, 2), 3, "hamming", point_slab=16, progress=lambda *now: seen.append(now))
    assert seen == [(80, 150), (150, 150)]
