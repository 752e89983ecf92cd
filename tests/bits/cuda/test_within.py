"""All rows of bits within a limit on CUDA: the bits of the reference for any limits, split and device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.bit_rows import MAKERS, few
from tests.helpers.bits_on_cuda import DEVICE, plan_for
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import tensors
from tests.helpers.radius_checks import hard_limits
from tests.helpers.radius_on_cuda import check_within
from tonari.metrics import BIT_METRICS

if HAS_TORCH:
    from tonari.bits.cuda.method import BitsOnCuda

pytestmark = [needs_torch]


def check(queries: Any, points: Any, metric: str, **choices: Any) -> None:
    given = {name: choices.pop(name) for name in ("counted", "self_join", "as_searched") if name in choices}
    asked, rows = given.get("as_searched", (queries, points))
    plan = plan_for(asked, rows, 1, metric, self_join=given.get("self_join", False), **choices)
    check_within(BitsOnCuda(), plan, queries, points, hard_limits(queries, points, metric), **given)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("counted", [False, True])
def test_limits_of_every_kind(metric: str, maker: str, counted: bool) -> None:
    check(MAKERS[maker](8, 5, 1), MAKERS[maker](30, 5), metric, counted=counted)


@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(("query_block", "point_slab"), [(3, 11), (8, 30)])
@pytest.mark.parametrize("where", ["host", "device"])
def test_no_split_changes_an_answer(metric: str, counted: bool, query_block: int, point_slab: int, where: str) -> None:
    points = few(12, 4)
    rows = tensors(DEVICE, points)[0] if where == "device" else points
    given: dict[str, Any] = {"query_block": query_block, "point_slab": min(point_slab, 12), "as_searched": (rows, rows)}
    check(points, points, metric, counted=counted, self_join=True, **given)


def test_several_devices_share_the_queries() -> None:
    check(few(5, 4, 1), few(30, 4), "hamming", devices=(DEVICE, DEVICE), query_block=2)


@on_gpu
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("maker", MAKERS)
def test_many_rows(metric: str, counted: bool, maker: str) -> None:
    points = MAKERS[maker](3_000, 64)
    check(MAKERS[maker](300, 64, 1), points, metric, counted=counted, point_slab=1024)
    check(np.ascontiguousarray(points[:700]), points[:700], metric, counted=counted, self_join=True)
