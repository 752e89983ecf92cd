"""What searches without rules are expected to take, by which filters choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.filters import nearest
from tonari.filters.engine import Engine
from tonari.filters.rules import Rules
from tonari.methods.place import CpuPlace

if HAS_TORCH:
    import torch

    from tonari.methods.place_cuda import CudaPlace

N, D = 1_000_000, 128


def held(*_: Any) -> Any:
    raise AssertionError


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("share", [0.7, 0.5, 0.01])
def test_rows_on_a_device_are_gathered_rather_than_dropped(share: float) -> None:
    """There a copy costs next to nothing, where in host memory it costs more than a search for more neighbours."""
    rows = torch.zeros(1, D).expand(N, D)
    ids = np.arange(int(share * N))
    for points, place in ((rows, CudaPlace(("cpu",))), (np.broadcast_to(np.float32(0), (N, D)), CudaPlace(("cpu",)))):
        engine = Engine(points=points, place=place, metric="euclidean", method="exact", held_nearest=held)
        gathered = not nearest._keeps_all(engine, 1_000, 10, Rules(m=1_000, n=N, shared=np.arange(N) < len(ids)), ids)
        assert gathered == (points is rows or share < 0.1)


@pytest.mark.parametrize("metric", ["hamming", "jaccard"])
def test_points_that_are_packed_are_not_packed_again(metric: str) -> None:
    points = np.broadcast_to(np.uint8(0), (N, D))
    given: dict[str, Any] = {"points": points, "place": CpuPlace(), "metric": metric, "threads": 1}
    anew, ready = Engine(**given), Engine(**given, method="bits", held_nearest=held)
    assert anew.seconds(1, 10) > 1.5 * ready.seconds(1, 10) > 0
    assert anew.seconds(1, 10, n=N // 1_000) < ready.seconds(1, 10)
