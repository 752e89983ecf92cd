"""Bitonic networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, on_device
from tests.helpers.select_checks import (
    check_kernels,
    make,
)
from tonari.select import tuning

if HAS_TORCH:
    import torch
    import triton
    import triton.language as tl

    from tonari.select.cuda.kernels.registers.network import keep_smaller, merge_pairs, smallest_pairs, sort_pairs

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


pytestmark = pytest.mark.usefixtures("small_tiles")


def run_network(device: str, which: int, keys: Any, ids: Any, k: int, descending: bool) -> tuple[Any, Any]:
    keys, ids = (torch.from_numpy(part).to(device) for part in (keys, ids))
    out_keys, out_ids = keys[:k].clone(), ids[:k].clone()
    network_kernel[(1,)](
        keys_ptr=keys, ids_ptr=ids, out_keys_ptr=out_keys, out_ids_ptr=out_ids,
        WHICH=which, N=len(keys), K=k, DESCENDING=int(descending), num_warps=1,
    )  # fmt: skip
    return out_keys.cpu().numpy(), out_ids.cpu().numpy()


@on_device
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("size", [2, 8, 128])
def test_network(device: str, size: int, dtype: str) -> None:
    """Keys with few different values and with many; pads, which are all the same pair."""
    rng = np.random.default_rng(size)
    limits = np.iinfo(dtype)
    for few in (False, True):
        low, high = (0, 2) if few else (limits.min, limits.max)
        keys = rng.integers(low, high, size, dtype=dtype, endpoint=True)
        ids = rng.permutation(size).astype(np.int32)
        pads = rng.random(size) < 0.2
        keys[pads], ids[pads] = limits.max, 2**31 - 1
        order = np.lexsort((ids, keys))
        for descending in (False, True):
            for which, k in ((0, size), (1, max(2, size // 8)), (1, size)):
                wanted = order[:k][::-1] if descending else order[:k]
                found = run_network(device, which, keys, ids, k, descending)
                np.testing.assert_array_equal(found, (keys[wanted], ids[wanted]))
            # An ascending run and a descending one are a bitonic sequence.
            first, second = np.sort(rng.permutation(size).reshape(2, -1), axis=1)
            runs = order[np.concatenate([first, second[::-1]])]
            wanted = order[::-1] if descending else order
            found = run_network(device, 2, keys[runs], ids[runs], size, descending)
            np.testing.assert_array_equal(found, (keys[wanted], ids[wanted]))
        if size > 2:
            found = run_network(device, 3, keys[runs], ids[runs], size // 2, False)
            np.testing.assert_array_equal(found, (keys[order[: size // 2]], ids[order[: size // 2]]))


@on_device
@pytest.mark.parametrize("maker", ["random", "ascending", "descending", "equal"])
@pytest.mark.parametrize("group", [32, 7, 900])
def test_slots_that_fill_up(device: str, group: int, maker: str) -> None:
    """More members at or below the bound than there are slots; groups that are longer than a tile."""
    values = make(maker, 2, 2100, "float32")
    lengths = np.array([2100, 1837])
    check_kernels(device, "hierarchical", values, 40, options={"group": group}, lengths=lengths)


@on_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bitonic_in_parts(device: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is cut up, and a part that is beyond a row's length."""
    monkeypatch.setattr(tuning, "BITONIC_PROGRAMS", 8)
    monkeypatch.setattr(tuning, "BITONIC_TILE", 64)  # eight tiles: four parts of a row
    values = make("leading_bits", 2, 450, dtype)
    check_kernels(device, "bitonic", values, 40, options={})
    check_kernels(device, "bitonic", values, 3, options={}, lengths=np.array([70, 1]), largest=True)
