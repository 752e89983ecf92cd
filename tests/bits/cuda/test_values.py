"""The values of all pairs on a GPU, or in Triton's interpreter without one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.bit_rows import MAKERS
from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.metrics import BIT_METRICS
from tonari.metrics.reference import pairwise

if HAS_TORCH:
    import torch

    from tonari.bits.cuda import unpack, values

pytestmark = needs_torch


def unpacked(rows: Any, device: str) -> Any:
    there = torch.from_numpy(rows).to(device)
    return unpack.unpack(there, unpack.room_for(len(rows) + 1, rows.shape[1], device))


@on_device
@pytest.mark.parametrize("maker", MAKERS)
def test_the_values_of_the_reference(device: str, maker: str) -> None:
    shapes = (1, 1, 1, None), (3, 257, 16, 2), (129, 5, 40, -1), (17, 20, 3, 0)
    for metric, (m, n, d, first_own) in itertools.product(BIT_METRICS, shapes):
        queries, points = MAKERS[maker](m, d, 1), MAKERS[maker](n, d)
        room = torch.full((m + 1, n + 3), -1.0, device=device)
        both = (unpacked(rows, device) for rows in (queries, points))
        values.write_values(*both, metric, room[:m, :n], first_own=first_own)
        truth = pairwise(queries, points, metric).astype(np.float32)
        if first_own is not None:
            truth[np.arange(m)[:, None] + first_own == np.arange(n)] = np.inf
        assert room[:m, :n].cpu().numpy().tobytes() == truth.tobytes()
        assert bool((room[m] == -1).all())
        assert bool((room[:, n:] == -1).all())


def test_quotients_of_float32_are_those_of_float64() -> None:
    """Check the argument of kernels/values.py for quotients at rounding boundaries of float32, and for others."""
    rng = np.random.default_rng(0)
    either = np.concatenate([rng.integers(1, 2**24 + 1, 200_000), np.arange(1, 5_000), [2**24, 2**24 - 1]])
    steps = rng.integers(0, 2**25, len(either)) / 2**25  # boundaries of rounding, and midpoints between two
    for differing in (rng.integers(0, either + 1), np.minimum(either, np.rint(either * steps))):
        in_float64 = (differing.astype(np.float64) / either.astype(np.float64)).astype(np.float32)
        in_float32 = differing.astype(np.float32) / either.astype(np.float32)
        assert in_float32.tobytes() == in_float64.tobytes()


_COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tonari.bits.cuda import values
from tonari.bits.cuda.kernels.listed import listed_values_kernel
from tonari.bits.cuda.kernels.unpack import unpack_kernel
from tonari.bits.cuda.kernels.values import values_kernel

step, rows, columns, stages = values.STEP, values.ROWS, values.COLUMNS, values.STAGES
of_values = {"queries": f"tensordesc<i8[{rows},{step}]>", "points": f"tensordesc<i8[{columns},{step}]>"}
tile = {"ROWS": rows, "COLUMNS": columns, "STEP": step, "STAGES": stages}
of_lists = {"queries_ptr": "*u8", "points_ptr": "*u8", "numbers_ptr": "*i64", "own_ptr": "*i64"}
cases = [
    (values_kernel, of_values, tile | {"JACCARD": True, "OWN": True}, values.WARPS),
    (values_kernel, of_values, tile | {"JACCARD": False, "OWN": False}, values.WARPS),
    (unpack_kernel, {"rows_ptr": "*u8", "unpacked_ptr": "*i8"}, {"ROWS": 16, "BYTES": 32}, 4),
    (listed_values_kernel, of_lists, {"JACCARD": True, "HAS_OWN": True, "LISTED": 32, "BYTES": 32}, 4),
]
for kernel, types, constants, warps in cases:
    types = {"values_ptr": "*fp32"} | types
    names = kernel.arg_names
    signature = {
        name: "constexpr" if name in constants else types.get(name, "*i32" if name.endswith("_ptr") else "i32")
        for name in names
    }
    source = ASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    ptx = built.asm["ptx"]
    # Products of bytes on matrix units, divisions that are rounded correctly, and no registers in memory.
    print(len(built.asm["cubin"]) > 0, ".s32.s8.s8" in ptx and "wgmma" in ptx, "div.rn.f32" in ptx, "ld.local" in ptx)
"""


@pytest.mark.full
@pytest.mark.process
def test_kernels_compile_for_hopper(tmp_path: Path) -> None:
    """This also runs without a GPU: not everything that the interpreter accepts compiles."""
    assert compiled(_COMPILE, tmp_path) == [
        "True True True False",
        "True True False False",
        "True False False False",
        "True False True False",
    ]
