"""Selection by hierarchical partition, compared with its model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, on_device
from tests.helpers.select_checks import (
    assert_same,
    make,
    select_by_kernels,
)
from tests.helpers.select_reference import select_k_reference
from tonari.select import Counters
from tonari.select.cuda import hierarchical
from tonari.select.cuda.hierarchical import list_sizes

if HAS_TORCH:
    import torch


pytestmark = pytest.mark.usefixtures("small_tiles")


@on_device
@pytest.mark.parametrize(
    ("n", "k", "options"),
    [
        (700, 5, {}),  # 700 -> 22 -> 1, the top list, which is never built
        (700, 5, {"levels": 1}),
        (700, 5, {"group": 3}),
        (700, 5, {"group": 3, "levels": 2}),
        (700, 5, {"group": 100_000}),
        (100, 80, {"group": 2}),  # 100 -> 50: all groups
        (60, 60, {}),  # no list at all
    ],
)
def test_hierarchical_examines_what_its_model_does(device: str, n: int, k: int, options: dict[str, Any]) -> None:
    for maker, lengths in (("random", None), ("equal", np.array([0, n, n // 3]))):
        counters, expected = Counters(), Counters()
        values = torch.from_numpy(make(maker, 3, n, "float32"))
        found, _ = select_by_kernels(device, "hierarchical", values, k, lengths=lengths, counters=counters, **options)
        model = {"group": hierarchical.Options().group} | options
        truth = select_k_reference(
            values, k, method="hierarchical", lengths=lengths, counters=expected, lanes=1, **model
        )
        assert_same(found, truth)
        assert counters == expected
    assert list_sizes(700, 5, 3, None) == [700, 234, 78, 26, 9, 3]
    assert list_sizes(700, 5, 3, 2) == [700, 234, 78]
