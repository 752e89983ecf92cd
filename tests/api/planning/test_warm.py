"""tonari.warm: the first search of a machine, before and after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.devices import needs_torch, on_gpu

pytestmark = needs_torch


def test_warming_for_the_cpu_compiles_nothing() -> None:
    assert tonari.warm(100, 10, 4, 3, device="cpu") == 0


_COLD = """
import json, sys, time
import torch, tonari
k = int(sys.argv[1])
torch.manual_seed(0)  # other rows may be left to attempts that warming does not compile
points = torch.randn((1_000_000, 128), device="cuda")
queries = torch.randn((10_000, 128), device="cuda")
torch.cuda.synchronize()
from triton import knobs
began = time.perf_counter()
count = tonari.warm(1_000_000, 10_000, 128, k) if sys.argv[2] == "warm" else 0
compiled = []
knobs.compilation.listener = lambda *, src, cache_hit, **_: compiled.append(src.name) if not cache_hit else None
if sys.argv[2] == "search":
    tonari.search(queries, points, k)
    torch.cuda.synchronize()
print(json.dumps([time.perf_counter() - began, compiled, count]))
"""


def cold(cache: Path, k: int, how: str) -> list[Any]:
    """In a fresh process, return seconds, the kernels compiled for the search, and the number that warming compiled."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache)}
    ran = subprocess.run(
        [sys.executable, "-c", _COLD, str(k), how], env=environment, capture_output=True, text=True, check=True
    )
    found: list[Any] = json.loads(ran.stdout)
    return found


@on_gpu
@pytest.mark.process
@pytest.mark.parametrize("k", [10, 256])
def test_the_first_search_of_a_machine_takes_seconds(k: int, tmp_path: Path) -> None:
    seconds, compiled, _ = cold(tmp_path, k, "search")
    assert len(compiled) > 10
    assert seconds < 30  # benchmarks require less


@on_gpu
@pytest.mark.process
def test_after_warming_nothing_is_compiled(tmp_path: Path) -> None:
    assert cold(tmp_path, 10, "warm")[2] > 10
    assert cold(tmp_path, 10, "warm")[2] == 0
    assert cold(tmp_path, 10, "search")[1] == []
