"""Methods with one program per row on a GPU: bitonic, quick, hierarchical, and their network.

Without a GPU, the same tests run in Triton's interpreter, and a separate process compiles kernels for Hopper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.compiling import compiled
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.select_checks import (
    DTYPES,
    FLOATS,
    MAKERS,
    assert_same,
    check_kernels,
    make,
    select_by_kernels,
    some_lengths,
)
from tests.helpers.select_reference import select_k_reference
from tonari.select import Counters, tuning
from tonari.select.cuda import bitonic, hierarchical, survivors
from tonari.select.papers import quick
from tonari.select.registry import make_options

if HAS_TORCH:
    import torch


pytestmark = pytest.mark.usefixtures("small_tiles")


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("bitonic", {}),
    ("quick", {"unit": "warp"}),
    ("quick", {"unit": "block"}),
    ("hierarchical", {}),
    ("hierarchical", {"group": 3}),
    ("hierarchical", {"group": 4, "levels": 2}),
]
every_method = pytest.mark.parametrize(
    ("method", "options"),
    [pytest.param(method, options, id="-".join([method, *map(str, options.values())])) for method, options in METHODS],
)


@on_device
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    ("method", "options"), [("bitonic", {}), ("quick", {"unit": "warp"}), ("hierarchical", {"group": 8})]
)
def test_values_made_to_hurt(device: str, maker: str, method: str, options: dict[str, Any]) -> None:
    """Each with its own shape, dtype and flags."""
    at = list(MAKERS).index(maker)
    offset = at + len(method)
    n, k = [(301, 20), (150, 40), (517, 5)][offset % 3]
    rows = 3 if offset % 4 == 0 else 1
    arguments: dict[str, Any] = {
        "largest": offset % 2 == 1,
        "lengths": some_lengths(rows, n, offset) if rows > 1 else None,
    }
    values = make(maker, rows, n, DTYPES[offset % len(DTYPES)], offset)
    check_kernels(device, method, values, k, options=options, sorted=offset % 5 > 0, **arguments)


@on_device
@every_method
@pytest.mark.parametrize(("n", "k"), [(1, 1), (33, 1), (100, 100), (130, 129)])
def test_least_and_greatest_k(device: str, n: int, k: int, method: str, options: dict[str, Any]) -> None:
    check_kernels(device, method, make("two_valued", 2, n, "float64", n), k, options=options)


@on_device
@pytest.mark.parametrize("method", ["bitonic", "hierarchical"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "uint8"])
def test_k_beyond_a_network(device: str, dtype: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (survivors, bitonic, hierarchical):
        monkeypatch.setattr(module, "LARGEST_NETWORK", 8)
    values = make("infinities", 3, 50, dtype)
    check_kernels(device, method, values, 20, options={})
    check_kernels(device, method, values, 20, options={}, lengths=np.array([50, 12, 0]), largest=True)
    if dtype in FLOATS:
        values[1, 3] = values[2, 30] = float("nan")
        assert select_by_kernels(device, method, values, 20)[1] == 1
        assert select_by_kernels(device, method, values, 20, lengths=np.array([50, 3, 31]))[1] == 2
        check_kernels(device, method, values, 20, options={}, nan="last")


@on_device
@every_method
def test_nan_is_last_and_its_first_row_told(device: str, method: str, options: dict[str, Any]) -> None:
    values = make("random", 4, 140, "float16")
    values[2, 20] = values[1, 139] = values[3, :] = np.nan
    values[2, 21] = -values[2, 20]  # NaN of either sign
    check_kernels(device, method, values, 4, options=options, nan="last", largest=True)
    for k in (3, 5) if method == "hierarchical" else (3,):  # groups of 32: with a list of minima, and without
        assert select_by_kernels(device, method, values[1:], k, **options)[1] == 0
        for end, row in ((20, None), (21, 1)):
            assert (
                select_by_kernels(device, method, values[1:], k, lengths=np.array([139, end, 0]), **options)[1] == row
            )


@on_device
@every_method
def test_rows_at_any_distance(device: str, method: str, options: dict[str, Any]) -> None:
    wide = torch.zeros((7, 231))
    values = wide[1:6:2, 3:220]
    values[:] = torch.from_numpy(make("random", 3, 217, "float32"))
    found, _ = select_by_kernels(device, method, values, 9, **options)
    assert_same(found, select_k_reference(values.contiguous(), 9))
    same = values[:1].expand(2, 217)
    found, _ = select_by_kernels(device, method, same, 9, **options)
    assert_same(found, select_k_reference(same.contiguous(), 9))


@on_device
@pytest.mark.parametrize("method", ["hierarchical", "quick"])
def test_rows_in_several_launches(device: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches report the first NaN of all rows."""
    monkeypatch.setattr(tuning, "SCRATCH_BYTES", 1)
    monkeypatch.setattr(quick, "SCRATCH_BYTES", 1)
    values = make("random", 3, 150, "float32")
    check_kernels(device, method, values, 4, options={}, lengths=np.array([0, 150, 99]))
    values[1, 5] = values[2, 6] = np.nan
    assert select_by_kernels(device, method, values, 4)[1] == 1


def examined(device: str, values: Any, k: int, unit: str) -> int:
    """Return the number of values that quick selection partitions, after checking the answer."""
    counters = Counters()
    tensor = torch.from_numpy(values)
    found, _ = select_by_kernels(device, "quick", tensor, k, unit=unit, counters=counters)
    assert_same(found, select_k_reference(tensor, k))
    assert counters.examined is not None
    return counters.examined


@on_device
def test_quick_reads_few_values_twice(device: str) -> None:
    """A pivot of low rank in a sample leaves few values on its left; a range that fits in a tile needs one round."""
    values = make("random", 1, 2000, "float32")
    assert 2000 < examined(device, values, 10, "warp") < 2000 * 1.25
    assert 2000 < examined(device, values, 1000, "warp") < 2000 * 2.5
    assert examined(device, values[:, :900].copy(), 900, "warp") == 900
    assert examined(device, values[:, :128].copy(), 10, "warp") == 128
    assert examined(device, values[:, :512].copy(), 100, "block") == 512


@on_device
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_quick_with_a_sample_that_misleads(device: str, dtype: str) -> None:
    """The smallest values are where the first samples are taken; every second pivot still halves the keys."""
    n, tile, run = 1024, 128, 2 if dtype == "float64" else 4
    values = np.full((1, n), 10**6, dtype)
    values[0] += np.random.default_rng(0).integers(0, 1000, n).astype(dtype)
    places = np.arange(tile) // run * (n // (tile // run)) + np.arange(tile) % run
    values[0, places] = np.arange(tile)
    bits = 64 if dtype == "float64" else 32
    assert n < examined(device, values, n // 2, "warp") < 2 * (bits + 32) * n
    equal = np.zeros((1, n), dtype)
    assert examined(device, equal, n // 2, "warp") < 4 * n


@on_gpu
@every_method
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_long_rows(dtype: str, method: str, options: dict[str, Any]) -> None:
    for rows, n, k in ((64, 5000, 600), (64, 5003, 17), (3, 300_000, 64), (2, 300_001, 2048), (2, 20_000, 4096)):
        for maker in ("random", "ascending", "descending", "equal", "two_valued", "leading_bits"):
            check_kernels("cuda", method, make(maker, rows, n, dtype), k, options=options, largest=k == 17)
    check_kernels("cuda", method, make("random", 2, 70_000, dtype), 30_000, options=options)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("quick", {"unit": "grid"}, "unit='grid': expected one of warp, block"),
        ("hierarchical", {"group": 1}, "group=1: expected at least 2 values per group"),
        ("hierarchical", {"levels": 0}, "levels=0: expected at least 1 list above the values"),
    ],
)
def test_options_that_cannot_work(method: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_options(method, options, "cuda")


_COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tonari.select.cuda.kernels.bitonic import bitonic_kernel, merge_runs_kernel
from tonari.select.cuda.kernels.hierarchical import minima_kernel, top_down_kernel
from tonari.select.papers.kernels.quick import quick_kernel

flags = {"HAS_LENGTHS": True, "CHECK_NAN": True, "COUNT": True, "LARGEST": True, "VALUES": True}
KERNELS = [
    (bitonic_kernel, False, {"SPLIT": True, "TILE": 128, "K": 64}),
    (merge_runs_kernel, True, {"K": 64}),
    (minima_kernel, True, {"G": 8, "GROUPS": 64, "WIDTH": 8, "TWO": True}),
    (minima_kernel, False, {"G": 5, "GROUPS": 64, "WIDTH": 8, "TWO": False}),
    (top_down_kernel, False, {"G": 8, "A": 1, "T": 64, "V": 4}),
    (quick_kernel, True, {"A": 2, "T": 64, "V": 2}),
]
for kernel, wide, constants in KERNELS:
    infinite = 0x7FF0000000000000 if wide else 0x7C00
    constants = flags | constants | {"WIDE": wide, "INFINITE": infinite, "MISSING": infinite}
    keys, bits = ("*i64", "*i64") if wide else ("*i32", "*i16")
    types = {"entries_ptr": keys, "run_keys_ptr": keys, "next_ptr": keys, "after_ptr": keys, "lists_ptr": keys,
             "lengths_ptr": "*i64", "examined_ptr": "*i64"}
    names = kernel.arg_names
    signature = {
        name: "constexpr" if name in constants
        else types.get(name, bits if name.endswith(("bits_ptr", "values_ptr", "list_ptr"))
                       else "*i32" if name.endswith("_ptr") else "i32")
        for name in names
    }
    source = ASTSource(kernel, signature, {(names.index(n),): v for n, v in constants.items() if n in names})
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
    print(kernel.__name__, len(built.asm["cubin"]) > 0)
"""


@pytest.mark.full
@pytest.mark.process
@needs_torch
def test_kernels_compile_for_hopper(tmp_path: Path) -> None:
    """This also runs without a GPU: not everything that the interpreter accepts compiles."""
    assert [line.split()[1] for line in compiled(_COMPILE, tmp_path)] == ["True"] * 6
