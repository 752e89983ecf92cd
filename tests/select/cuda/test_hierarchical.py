"""Selection by hierarchical partition, beside its model."""

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
from tonari.select import Counters, tuning
from tonari.select.cuda import hierarchical
from tonari.select.cuda.hierarchical import list_sizes
from tonari.select.papers import quick
from tonari.select.reference import select_k_reference

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    from tonari.select.cuda.kernels.network import keep_smaller, merge_pairs, smallest_pairs, sort_pairs

    @triton.jit
    def network_kernel(
        keys_ptr, ids_ptr, out_keys_ptr, out_ids_ptr,
        WHICH: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DESCENDING: tl.constexpr,
    ):  # fmt: skip
        places = tl.arange(0, N)
        keys = tl.load(keys_ptr + places)
        ids = tl.load(ids_ptr + places)
        if WHICH == 0:
            keys, ids = sort_pairs(keys, ids, N, DESCENDING)
        if WHICH == 1:
            keys, ids = smallest_pairs(keys, ids, N, K, DESCENDING)
        if WHICH == 2:
            keys, ids = merge_pairs(keys, ids, N, DESCENDING)
        if WHICH == 3:
            half = tl.arange(0, K)
            keys, ids = keep_smaller(
                tl.load(keys_ptr + half), tl.load(ids_ptr + half),
                tl.load(keys_ptr + K + half), tl.load(ids_ptr + K + half), K,
            )  # fmt: skip
        left = tl.arange(0, K)
        tl.store(out_keys_ptr + left, keys)
        tl.store(out_ids_ptr + left, ids)


@pytest.fixture(autouse=True)
def small_tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles that rows of a few hundred values fill several times; those of every day on a GPU."""
    if "gpu" in request.keywords:
        return
    monkeypatch.setattr(tuning, "BITONIC_TILE", 64)
    monkeypatch.setattr(quick, "TILES", {"warp": (128, 1), "block": (512, 2)})
    monkeypatch.setattr(tuning, "BUILD_TILE", 256)
    monkeypatch.setattr(tuning, "BUILD_WIDTH", 64)


@on_device
@pytest.mark.parametrize(
    ("n", "k", "options"),
    [
        (700, 5, {}),  # 700 -> 22 -> 1, which is the top list but never built
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
