"""Kernels of the build compile for a GPU on machines without one; Triton's interpreter runs code that does not
compile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.devices import needs_torch

_COMPILE = """
import torch
from triton.runtime import driver
from tests.helpers.target_alone import TargetAlone
from tonari.kdtree.cuda.kernels.halve import halve_kernel
from tonari.kdtree.cuda.kernels.place import enclose_kernel, place_kernel
driver.set_active(TargetAlone())
order, ids = torch.empty(5000, dtype=torch.int64), torch.empty(5056, dtype=torch.int32)
for dtype in (torch.float32, torch.float64):
    rows, boxes = torch.empty((5000, 3), dtype=dtype), torch.empty((4, 3, 2, 32), dtype=dtype)
    given = {"D": 3, "grid": (1,)}
    for count, leaves in ((1, 32), (16, 2)):
        of_level = {"COUNT": count, "LEAVES": leaves}
        halve_kernel.warmup(rows, order, 5000, 64, LEAF=64, **of_level, BITS=24, num_warps=8, **given)
    place_kernel.warmup(rows, order, ids, rows, boxes, 5000, 1, BLOCK=64, WIDTH=32, num_warps=1, **given)
    enclose_kernel.warmup(boxes, 0, 3, 3, WIDTH=32, num_warps=1, **given)
print("compiled")
"""


@pytest.mark.full  # compiles for ten seconds and more
@needs_torch
@pytest.mark.process
def test_kernels_of_the_build_compile(tmp_path: Path) -> None:
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    ran = subprocess.run(
        [sys.executable, "-c", _COMPILE], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.stdout == "compiled\n", ran.stderr
