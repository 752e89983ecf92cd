"""Rows of survivors, sorted by networks, in blocks and runs, and by several programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import on_device
from tests.helpers.select_checks import (
    DTYPES,
    MAKERS,
    check_kernels,
    make,
    select_by_kernels,
)
from tonari.select import tuning
from tonari.select.cuda import bitonic, radix, survivors

# For the interpreter, where many programs share a row and runs are merged.
TILE, RUN = 64, 32


@pytest.fixture
def shared_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select by radix with many programs for a row of some hundred values, and with runs so short that there are
    several.

    On a GPU tiles and runs stay what they are.
    """
    monkeypatch.setattr(tuning, "RADIX_PART_TILES", 1)
    monkeypatch.setattr(tuning, "RADIX_SHARED_TILES", 1)
    for module in (survivors, radix, bitonic):
        monkeypatch.setattr(module, "LARGEST_NETWORK", 16)
    if "gpu" not in request.keywords:
        monkeypatch.setattr(tuning, "RADIX_TILE", TILE)
        monkeypatch.setattr(tuning, "RADIX_PROGRAMS", 15)
        monkeypatch.setattr(tuning, "SORTED_RUN", RUN)
        monkeypatch.setattr(tuning, "MERGE_TILE", RUN // 2)


@pytest.mark.full
@on_device
@pytest.mark.parametrize("dtype", DTYPES)
def test_k_beyond_a_network(device: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's sort orders more than a network can."""
    monkeypatch.setattr(survivors, "LARGEST_NETWORK", 16)
    values = make("zeros", 3, 90, dtype)
    for largest in (False, True):
        check_kernels(device, "radix", values, 40, options={}, largest=largest, lengths=np.array([90, 39, 0]))


@on_device
@pytest.mark.parametrize("method", ["threshold", "radix"])
def test_rows_in_blocks(device: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch for some of the rows at a time, and NaN in a row of the second block."""
    monkeypatch.setattr(tuning, "SCRATCH_BYTES", 1)
    values = make("random", 67, 60, "float32")
    check_kernels(device, method, values[:35], 7, options={})
    values[[41, 66], 3] = np.nan
    assert select_by_kernels(device, method, values, 7)[1] == 41


@on_device
@pytest.mark.usefixtures("shared_rows")
@pytest.mark.parametrize("maker", MAKERS)
def test_rows_that_many_programs_share(device: str, maker: str) -> None:
    """Each with its own dtype and flags; several programs often have the k-th value."""
    at = list(MAKERS).index(maker)
    n = 3 * tuning.RADIX_TILE + at - 5  # a last part that is short, or just is none
    values = make(maker, 2, n, DTYPES[at % len(DTYPES)], at)
    arguments: dict[str, Any] = {"largest": at % 2 == 1, "sorted": at % 3 > 0}
    check_kernels(device, "radix", values, n // 3, options={"bits": 8 - at % 3}, **arguments)
    lengths = np.array([n - at, tuning.RADIX_TILE + at - 5])
    check_kernels(device, "radix", values, n // 3, options={}, lengths=lengths, **arguments)


@on_device
@pytest.mark.usefixtures("shared_rows")
@pytest.mark.parametrize(
    ("dtype", "ordered"), [("float32", True), ("float32", False), ("float64", False), ("uint8", True)]
)
def test_lengths_around_a_tile(device: str, dtype: str, ordered: bool) -> None:
    """No value, one, and as many as fill a program's tile, with k from one to all; ties on both sides of its border."""
    tile = tuning.RADIX_TILE
    n = 3 * tile
    lengths = np.array([0, 1, tile, tile + 1, n])
    values = make("equal", len(lengths), n, dtype)
    for k in (1, tile, n):
        check_kernels(device, "radix", values, k, options={}, lengths=lengths, sorted=ordered)
    values = make("zeros", 1, n, dtype)
    check_kernels(device, "radix", values, tile + 1, options={}, sorted=ordered, largest=True)


@on_device
@pytest.mark.usefixtures("shared_rows")
def test_nan_in_shared_rows(device: str) -> None:
    n = 3 * tuning.RADIX_TILE + 5
    for dtype, ordered in (("float32", True), ("bfloat16", False), ("float64", False)):
        values = make("random", 3, n, dtype)
        values[1, n - 1], values[1, 7] = np.nan, -np.nan
        values[2, tuning.RADIX_TILE :] = -np.nan
        assert select_by_kernels(device, "radix", values, 20, sorted=ordered)[1] == 1
        lengths = np.array([n, 7, tuning.RADIX_TILE + 1])
        assert select_by_kernels(device, "radix", values, 20, sorted=ordered, lengths=lengths)[1] == 2
        beyond = tuning.RADIX_TILE + 5  # the numbers of the last row
        arguments: dict[str, Any] = {"sorted": ordered, "largest": ordered, "nan": "last"}
        check_kernels(device, "radix", values, beyond, options={}, **arguments)


@on_device
@pytest.mark.usefixtures("shared_rows")
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_runs_that_are_merged(device: str, dtype: str) -> None:
    """One run, two whole runs, and one more pair that first has no partner; rows that end in any of them."""
    run = tuning.SORTED_RUN
    for n in (run - 1, 2 * run, 2 * run + 1):
        values = make("leading_bits", 3, n, dtype, n)
        check_kernels(device, "bitonic", values, n, options={}, largest=n % 2 == 0)
        lengths = np.array([0, n - 2, max(17, run)]).clip(max=n)
        check_kernels(device, "bitonic", values, n - 1, options={}, lengths=lengths)


@on_device
def test_several_runs_are_merged_where_little_is_left_out(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network for all of them would take longer, except if it has few to sort among many."""
    if device == "cpu":
        monkeypatch.setattr(tuning, "SORTED_RUN", RUN)
        monkeypatch.setattr(tuning, "MERGE_TILE", RUN // 2)
    k = tuning.SORTED_RUN + 8
    values = make("two_valued", 2, 3 * k, "float32")
    with monkeypatch.context() as only:
        only.setattr(survivors, "_finish_by_network", lambda *_: pytest.fail("one network"))
        check_kernels(device, "radix", values, k, options={}, lengths=np.array([2 * k, k - 9]))
    monkeypatch.setattr(survivors, "_finish_by_merging", lambda *_: pytest.fail("runs"))
    check_kernels(device, "radix", values, tuning.SORTED_RUN, options={})
    check_kernels(device, "hierarchical", values, k, options={})
