"""The device and the CPU read rows in host memory without converting them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device, on_gpu
from tests.helpers.gpu_checks import numpy_of, rows_of
from tonari import inputs

if HAS_TORCH:
    import torch

    from tonari.cuda import host_rows
    from tonari.cuda.host_rows import HostRows

pytestmark = needs_torch


@on_device
@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "gathered"])
@pytest.mark.parametrize(
    ("dtype", "d"), [("uint8", 128), ("uint8", 7), ("float16", 3), ("bfloat16", 10), ("float32", 70), ("float64", 5)]
)
def test_rows_arrive(device: str, dtype: str, d: int, mapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not mapped:
        monkeypatch.setattr(HostRows, "_lock", lambda self, rows: False)
    rows = rows_of(90, d, dtype)
    held = HostRows(inputs.held(rows), torch.device(device))
    if not mapped and device == "cpu":
        held._there = None
    numbers = torch.tensor([5, -1, 89, 0, 5, -1, *range(60)], dtype=torch.int32, device=device)
    out: Any = torch.zeros((len(numbers), d), dtype=getattr(torch, dtype), device=device)
    held.fetch(numbers, out)
    wanted = numbers.cpu().numpy()
    assert np.array_equal(numpy_of(out)[wanted >= 0], rows[wanted[wanted >= 0]])


@on_device
def test_no_rows(device: str) -> None:
    held = HostRows(np.zeros((0, 4), np.float32), torch.device(device))
    out = torch.zeros((2, 4), device=device)
    held.fetch(torch.full((2,), -1, dtype=torch.int32, device=device), out)
    assert not out.any()


def test_memory_is_locked_once_for_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows within page-locked memory share its lock; the last user unlocks it."""
    calls: list[tuple[str, int]] = []

    class Runtime:
        def cudaHostRegister(self, begin: int, size: int, flags: int) -> int:
            calls.append(("lock", size))
            return 0 if size > 40 else 1

        def cudaHostUnregister(self, begin: int) -> int:
            calls.append(("unlock", begin))
            return 0

    monkeypatch.setattr(torch.cuda, "cudart", Runtime)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    rows = np.zeros((10, 3), np.float64)
    locks = [host_rows._locked(part, "cuda:0") for part in (rows, rows[2:5])]
    assert locks[0] is locks[1] is not None
    assert host_rows._locked(np.zeros(5), "cuda:0") is None  # refused
    locks[0].give_back()
    assert calls == [("lock", 240), ("lock", 40)]
    locks[1].give_back()
    assert calls[2:] == [("unlock", rows.ctypes.data)]
    assert host_rows._LOCKS == []


@on_gpu
def test_two_objects_may_read_the_same_rows() -> None:
    rows = np.arange(4096, dtype=np.float32).reshape(64, 64)
    one, two = (HostRows(rows, torch.device("cuda:0")) for _ in range(2))
    assert one.is_mapped
    assert two.is_mapped
    del one
    out = torch.zeros((1, 64), device="cuda")
    two.fetch(torch.tensor([63], dtype=torch.int32, device="cuda"), out)
    assert out.cpu().numpy().tolist() == rows[63:].tolist()
