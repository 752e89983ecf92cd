"""Results are copied to host memory: completely, in order, with waiting, and none is lost if there is an error."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch, on_gpu
from tonari.cuda import tuning

if HAS_TORCH:
    import torch

    from tonari.cuda.copying.staging import Collector

pytestmark = [needs_torch]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"
CYCLES = 400_000_000  # a fifth of a second on a GPU


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PIECE_BYTES", 64)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 1000])
@pytest.mark.usefixtures("small_pieces")
def test_pieces_make_the_whole(rows: int, dtype: str) -> None:
    given = [np.random.default_rng(at).integers(0, 99, (rows, 3)).astype(dtype) for at in range(3)]
    out = [np.zeros_like(array) for array in given]
    with Collector(DEVICE) as collector:
        for array, target in zip(given, out, strict=True):
            collector.collect(torch.from_numpy(array).to(DEVICE), target)
        collector.arrive()
        for array, target in zip(given, out, strict=True):
            assert (target == array).all()


@pytest.mark.usefixtures("small_pieces")
def test_an_error_of_a_thread_is_raised_and_no_thread_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    copyto, calls = np.copyto, iter(range(100))

    def fails(*arguments: Any) -> None:
        if next(calls) == 5:
            raise OSError("no memory behind this page")
        copyto(*arguments)

    monkeypatch.setattr(np, "copyto", fails)
    values, out = torch.arange(1000.0, device=DEVICE), np.zeros(1000, np.float32)
    with Collector(DEVICE) as collector:
        collector.collect(values, out)
        collector.collect(values, out)
        with pytest.raises(OSError, match="no memory behind this page"):
            collector.arrive()
    assert set(threading.enumerate()) == before


@pytest.mark.usefixtures("small_pieces")
def test_leaving_early_ends_the_threads() -> None:
    before = set(threading.enumerate())
    with Collector(DEVICE) as collector:
        collector.collect(torch.zeros(100_000, device=DEVICE), np.empty(100_000, np.float32))
    assert set(threading.enumerate()) == before


@on_gpu
def test_a_copy_waits_for_the_work_before_it_and_the_host_for_the_copy() -> None:
    """The device writes values late, and the stream of copies is delayed, too; buffers are reused many times."""
    torch.cuda._sleep(1)
    values = torch.full((1 << 24,), -1.0, dtype=torch.float64, device="cuda")
    out = np.zeros(len(values))
    with Collector("cuda:0") as collector:
        for turn in range(3):
            torch.cuda._sleep(CYCLES)
            values.copy_(torch.arange(turn, turn + len(values), device="cuda"))
            collector.collect(values, out)
            with torch.cuda.stream(collector._stream):
                torch.cuda._sleep(CYCLES)
            collector.arrive()
            assert (out == np.arange(turn, turn + len(values))).all()


@on_gpu
def test_memory_is_kept_until_it_is_copied() -> None:
    out = np.zeros(1 << 24, np.float32)
    with Collector("cuda:0") as collector:
        with torch.cuda.stream(collector._stream):
            torch.cuda._sleep(CYCLES)
        collector.collect(torch.ones(len(out), device="cuda"), out)
        others = [torch.zeros(len(out), device="cuda") for _ in range(4)]
        collector.arrive()
    assert (out == 1).all()
    assert all(float(other.sum()) == 0 for other in others)
