"""Selection from few long rows that are cut into parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.select_checks import assert_same, assert_selection, make, select_by_kernels
from tests.helpers.select_reference import select_k_reference
from tonari.select import tuning
from tonari.select.auto import choose
from tonari.select.cuda import parts
from tonari.select.cuda.parts import Level, shape_for
from tonari.select.request import Selection

if HAS_TORCH:
    import torch


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Cut rows of a hundred values into parts; the lists of parts are cut as well."""
    small = {"LARGEST_TILE": 512, "TILE": 256, "OVER_K": 2, "SLACK_LEAST": 2, "LEAST_WARPS": 1}
    for name, value in small.items():
        monkeypatch.setattr(tuning, f"PARTS_{name}", value)
    monkeypatch.setattr(tuning, "LARGEST_RESIDENT", 0)
    shape_for.cache_clear()
    yield
    shape_for.cache_clear()


def check(device: str, values: Any, k: int, **arguments: Any) -> Selection:
    """Check an answer to the last bit, and return it."""
    values = torch.as_tensor(values)
    found, _ = select_by_kernels(device, "threshold", values, k, **arguments)
    ordered = arguments.pop("sorted", True)
    assert_same(found, select_k_reference(values, k, **arguments), sorted=ordered)
    return found


@on_device
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("maker", "dtype", "n", "k", "flags"),
    [
        ("random", "bfloat16", 1000, 70, {}),
        ("equal", "uint8", 600, 60, {}),
        ("two_valued", "float32", 600, 1, {"largest": True}),
        ("zeros", "float32", 250, 70, {"sorted": False}),
        ("leading_bits", "float64", 500, 30, {}),
    ],
)
def test_ties_of_parts_go_to_the_smallest_columns(
    device: str, maker: str, dtype: str, n: int, k: int, flags: dict[str, Any]
) -> None:
    levels = parts.shape_for(n, k, dtype == "float64")
    assert levels is not None
    assert len(levels.levels) == {1000: 2, 600: 1, 250: 0, 500: 1}[n]
    found = check(device, make(maker, 1, n, dtype), k, **flags)
    if not flags.get("sorted", True):
        assert (found.indices.diff() > 0).all(), "rows in any order come in order of the column"


@on_device
@pytest.mark.usefixtures("small_parts")
def test_empty_slots_come_after_nan(device: str) -> None:
    """Parts with fewer than k values leave slots empty; NaN has the same key as these, but is an answer."""
    values = torch.full((3, 600), float("nan"))
    values[:, 560:] = -torch.arange(40.0)
    lengths = np.array([600, 565, 4])
    found = check(device, values, 9, lengths=lengths, nan="last")
    assert found.indices[2].tolist() == [0, 1, 2, 3, -1, -1, -1, -1, -1]
    assert select_by_kernels(device, "threshold", values, 9, lengths=np.array([0, 565, 9]))[1] == 1


@on_device
@pytest.mark.usefixtures("small_parts")
def test_rows_of_any_stride_and_length(device: str) -> None:
    values = np.pad(make("infinities", 2, 120, "int32"), ((0, 0), (0, 8)), constant_values=-(2**31))
    rows = torch.from_numpy(values)[:, :120]
    check(device, rows, 45, lengths=np.array([120, 90]), sorted=False)


def test_parts_cover_rows_and_keep_k() -> None:
    """Whatever the width, no pair is left out and every list has room for k, up to the last launch."""
    for n in (4097, 32_769, 131_072, 999_999, 1 << 20):
        for k in (1, 64, 2048):
            for wide in (False, True):
                shape = shape_for(n, k, wide)
                assert shape is not None
                width = n
                for level in shape.levels:
                    assert level.width == width <= level.parts * level.tile < width + level.tile
                    assert level.keep >= k
                    width = level.parts * level.keep
                assert shape.width == width <= tuning.PARTS_LARGEST_TILE // (2 if wide else 1)
    assert shape_for(100_000, 5000, False) is None, "k too large for a network"
    assert shape_for(8192, 1024, False) == parts.Shape((), 8192)
    assert shape_for(32_768, 1024, False) == parts.Shape((Level(32_768, 8192, 4, 1280),), 5120)


def test_auto_cuts_few_long_rows() -> None:
    assert choose("cuda", 16, 131_072, 1024, "bfloat16") == ("threshold", {})
    assert choose("cuda", 1, 8192, 64, "float32") == ("threshold", {})
    assert choose("cuda", tuning.PARTS_ROWS + 1, 8192, 64, "float32") == ("bitonic", {})


@needs_torch
def test_only_checked_arguments_repeat_a_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    """True equals 1, so types count as well."""
    monkeypatch.setattr(parts, "_KEPT", {"some": None})
    for given in ((np.zeros((1, 9)), 1, False, True), (None, 1, False, True)):
        assert parts.repeated(*given) is None


@on_gpu
def test_repeated_launches_select_anew() -> None:
    """Other values at other addresses, any stream, a CUDA graph, and arguments that only look the same."""
    rng = torch.Generator(device="cuda").manual_seed(3)
    first, second = torch.randn((2, 3, 70_001), device="cuda", generator=rng)
    for k in (1, 700):
        for values in (first, second, first[:, 1:]):
            for _ in range(2):
                found = tonari.select_k(values, k, nan="last")
                assert_selection(Selection(*(part.cpu() for part in found)), values.cpu(), k)
    with pytest.raises(TypeError, match="k"):
        tonari.select_k(first, True, nan="last")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = tonari.select_k(first, 700, nan="last")
    first.copy_(second)
    graph.replay()
    assert_selection(Selection(*(part.cpu() for part in found)), second.cpu(), 700)
