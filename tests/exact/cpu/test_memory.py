"""A memory budget is kept: the peak of resident memory, which includes native buffers, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tonari
from tonari.inputs import parse_memory

MIB = 1 << 20

# In addition to the plan: stacks, Python objects, and pages that a block occupies only in part.
MARGIN = MIB

# glibc's malloc keeps blocks of up to 32 MiB that were freed, for each thread, and more or less of them by how threads
# take turns: 7 to 13 MiB here. With these, blocks of 64 KiB and more go back to the system when they are freed, and the
# peak is what the search holds.
GIVING_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}

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
    """Return peak bytes, the plan's total and packed bytes, and whether points are resident and answers look right."""
    return run(CHILD.format(metric=metric, memory=memory, spread=spread, dtype=dtype))


def run(code: str) -> list[int]:
    """Return the numbers that a separate process prints."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | GIVING_BACK | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [int(word) for word in result.stdout.split()]


@pytest.mark.process
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
@pytest.mark.parametrize(
    ("metric", "dtype"),
    [
        ("euclidean", "float32"),
        *(pytest.param(*each, marks=pytest.mark.full) for each in (("l1", "float32"), ("euclidean", "bfloat16"))),
    ],
)
def test_peak_stays_within_the_budget(metric: str, dtype: str) -> None:
    peak, planned, packed, resident, right = peak_of(metric, None, dtype=dtype)
    assert (resident, right) == (1, 1)
    assert 0.8 * packed < peak < planned + MARGIN  # the measurement sees the packed copy, and the plan predicted it

    budget = 24 * MIB
    peak, planned, _, resident, right = peak_of(metric, f"{budget}B", dtype=dtype)
    assert (resident, right) == (0, 1)
    assert planned <= budget
    assert peak < budget + MARGIN


@pytest.mark.process
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
def test_peak_stays_within_the_budget_when_rows_climb() -> None:
    budget = 60 * MIB
    # Twenty clusters far apart: no row is proved before the last level, for which points are packed again.
    peak, planned, _, _, right = peak_of("euclidean", f"{budget}B", spread=1e3)
    assert right == 1
    assert planned <= budget
    assert peak < budget + MARGIN


RETRIES = """
import re, sys
import numpy as np, tonari

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

kind, verb, threads, k, memory = {arguments!r}
random = np.random.default_rng(0)
if kind == "equal":
    points = np.ones((7_000, 32), np.float32)
elif kind == "two groups":
    points = 1e-3 * random.standard_normal((8_000, 64), np.float32)
    points[::2] += 100
else:
    points = random.standard_normal((20_000, 300), np.float32)
warm = random.standard_normal((3000, 16), np.float32)
tonari.search(warm[:300], warm, 5, threads=threads, method="exact")  # whatever is loaded once is loaded
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from what is held now
before = peak()
join = verb == "graph"
n, d = points.shape
m = n if join else 6000
plan = tonari.plan(n, m, d, k, threads=threads, memory=memory, self_join=join)
if join:
    found = tonari.knn_graph(points, k, plan=plan).indices
else:
    found = tonari.search(points[:m].copy(), points, k, plan=plan).indices
print(peak() - before, plan.total_bytes, len(found))
"""

# More blocks of queries than are open at once, and so many survivors that all rows are retried: as points are equal, or
# lie in groups so far apart that int8 steps are larger than a group. The last graph is what its name says.
CASES: list[Any] = [
    ("equal", "search", 1, 10, "20MB"),
    pytest.param(("equal", "search", 2, 10, "40MB"), marks=pytest.mark.full),
    ("two groups", "search", 8, 10, "150MB"),
    pytest.param(("two groups", "search", 2, 10, None), marks=pytest.mark.full),
    ("equal", "graph", 2, 10, "40MB"),
    pytest.param(("equal", "graph", 2, 10, None), marks=pytest.mark.full),
    pytest.param(("random", "graph", 2, 50, None), marks=pytest.mark.full),
    pytest.param(("random", "graph", 2, 50, "120MB"), marks=pytest.mark.full),
]


@pytest.mark.process
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_peak_stays_within_the_plan_with_many_blocks(case: tuple[str, str, int, int, str | None]) -> None:
    peak, planned, rows = run(RETRIES.format(arguments=case))
    assert rows > 5000
    assert planned <= parse_memory(case[-1] or "1TB")
    assert peak < planned + MARGIN
