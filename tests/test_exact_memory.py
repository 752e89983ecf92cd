"""A memory budget is kept: the peak of resident memory, which counts native buffers too, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tonari

MIB = 1 << 20

# Beyond the plan: the allocator's slack and arenas of its own for two threads, stacks, and Python's own objects.
MARGIN = 6 * MIB

CHILD = """
import re, sys
import numpy as np, tonari
import ml_dtypes  # which numpy then knows

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

points = np.random.default_rng(0).random((500_000, 64), np.float32)
points += {spread} * (np.arange(500_000) % 20)[:, None].astype(np.float32)
points = points.astype({dtype!r})
queries = points[:500].copy()
problem = dict(metric={metric!r}, threads=2)
tonari.search(queries[:300], points[:5000], 10, **problem)  # whatever is loaded once is loaded
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from what is held now
before = peak()
plan = tonari.plan(500_000, 500, 64, 10, memory={memory!r}, dtype={dtype!r}, **problem)
found = tonari.search(queries, points, 10, metric={metric!r}, plan=plan)
print(peak() - before, plan.total_bytes, plan.packed_bytes, int(plan.resident))
print(int(found.indices[:, 0].tolist() == list(range(500))))
"""


def peak_of(metric: str, memory: str | None, spread: float = 0, dtype: str = "float32") -> list[int]:
    """Give peak bytes, the plan's total and packed bytes, whether resident, and whether the answer looks right."""
    result = subprocess.run(
        [sys.executable, "-c", CHILD.format(metric=metric, memory=memory, spread=spread, dtype=dtype)],
        env=os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [int(word) for word in result.stdout.split()]


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
@pytest.mark.parametrize(("metric", "dtype"), [("euclidean", "float32"), ("l1", "float32"), ("euclidean", "bfloat16")])
def test_peak_stays_within_the_budget(metric: str, dtype: str) -> None:
    peak, planned, packed, resident, right = peak_of(metric, None, dtype=dtype)
    assert (resident, right) == (1, 1)
    assert 0.8 * packed < peak < planned + MARGIN  # the measure sees the packed copy, and the plan foresaw it

    budget = 24 * MIB
    peak, planned, _, resident, right = peak_of(metric, f"{budget}B", dtype=dtype)
    assert (resident, right) == (0, 1)
    assert planned <= budget
    assert peak < budget + MARGIN


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
def test_peak_stays_within_the_budget_when_rows_climb() -> None:
    budget = 60 * MIB
    # Twenty clusters far apart: no row is certified before the last rung, for which points are packed anew.
    peak, planned, _, _, right = peak_of("euclidean", f"{budget}B", spread=1e3)
    assert right == 1
    assert planned <= budget
    assert peak < budget + MARGIN
