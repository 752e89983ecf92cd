"""A tree stays within its budget plus the returned lists, measured by resident memory in a separate process."""

from __future__ import annotations

import subprocess
import sys

import pytest

N, MIN_SAMPLES, BUDGET = 30_000, 5, 20_000_000
STAYS = 50 * N * (MIN_SAMPLES + 5)  # lists and edges, as the docstring states
MARGIN = 6 << 20  # slack of the allocator, stacks, and Python objects

CHILD = f"""
import re
import numpy as np, tonari

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

points = np.random.default_rng(0).standard_normal(({N}, 20), dtype=np.float32)
tonari.mutual_reachability_tree(points[:2000], {MIN_SAMPLES}, memory={BUDGET}, threads=2)
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from what is held now
before = peak()
tonari.mutual_reachability_tree(points, {MIN_SAMPLES}, memory={BUDGET}, threads=2)
print(peak() - before)
"""


@pytest.mark.process
def test_the_peak_of_a_tree() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert int(done.stdout) < BUDGET + STAYS + MARGIN
