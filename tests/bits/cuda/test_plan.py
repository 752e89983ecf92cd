"""Plans of searches among rows of bits on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.bit_rows import noise
from tests.helpers.bits_on_cuda import DEVICE, plan_for
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import tensors
from tonari.core.errors import BudgetExceeded
from tonari.metrics import BIT_METRICS

if HAS_TORCH:
    import torch


pytestmark = [needs_torch]


def test_a_budget_is_kept_or_refused() -> None:
    given: dict[str, Any] = {"n": 10**6, "m": 10**4, "d": 128, "k": 10}
    rows = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (10**6, 128), (0, 0))
    whole = plan_for(rows[: given["m"]], rows, 10, "hamming", free_bytes=10**11)
    assert not whole.streamed
    before = whole
    for budget in (2 * 10**9, 10**9, 3 * 10**8, 10**8):
        made = plan_for(rows[: given["m"]], rows, 10, "hamming", free_bytes=10**11, memory=budget)
        assert made.total_bytes <= budget
        assert made.query_block * made.point_slab < before.query_block * before.point_slab or made.streamed
        before = made
    assert before.streamed
    with pytest.raises(BudgetExceeded, match="allow at least"):
        plan_for(rows[: given["m"]], rows, 10, "hamming", memory=10**6)


@on_gpu
@pytest.mark.parametrize("metric", BIT_METRICS)
@pytest.mark.parametrize("memory", [None, "300MB"])
@pytest.mark.parametrize("where", ["host", "device"])
def test_memory_is_planned(metric: str, memory: str | None, where: str) -> None:
    queries, points = noise(3_000, 128, 1), noise(1_500_000, 128)
    rows = tensors(DEVICE, queries, points) if where == "device" else [queries, points]
    tonari.search(queries[:9], points[:999], 10, metric=metric, device="cuda")
    for k in (10, 2_000):
        plan = plan_for(*rows, k, metric, free_bytes=10**11, memory=memory)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        tonari.search(*rows, k, metric=metric, plan=plan, device="cuda")
        torch.cuda.synchronize()
        assert torch.cuda.max_memory_allocated() - before <= plan.total_bytes
