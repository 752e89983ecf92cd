"""A build stays within the allowed memory, measured in a separate process on a file several times as large.

The tests measure the memory that the library holds. They therefore make glibc return larger blocks to the system as
soon as they are freed; by default, glibc keeps some in each of its arenas, which the library cannot plan.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.shards import ROUTES
from tonari.core.errors import BudgetExceeded
from tonari.shards.planning.planner import plan_build
from tonari.shards.planning.sizes import Sizes
from tonari.shards.source import as_source

pytestmark = pytest.mark.process


def write(path: Path, n: int, d: int) -> Path:
    """Write points in clusters, block by block."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((200, d)).astype(np.float32)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
    for begin in range(0, n, 1000):
        part = rows[begin : begin + 1000]
        part[:] = centres[rng.integers(200, size=len(part))] + rng.standard_normal(part.shape)
    rows.flush()
    return path


def peak(points: Path, memory: int, method: str, *, isa: str | None = None, **more: Any) -> dict[str, Any]:
    """Build in another process; return its measurements."""
    root = Path(__file__).parents[2]
    given: dict[str, Any] = {"source": str(points), "k": 10, "out": str(points.with_name(method)), "memory": memory}
    given |= {"method": method, "recall": None if method == "exact" else 0.9} | more
    paths = os.pathsep.join([str(Path(tonari.__file__).parents[1]), str(root)])
    told = subprocess.run(
        [sys.executable, "-m", "tests.helpers.peak", json.dumps(given)],
        capture_output=True,
        text=True,
        cwd=root,
        env=os.environ
        | ({} if isa is None else {"TONARI_ISA": isa})
        | {"PYTHONPATH": paths, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"},
    )
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


def test_the_peak_of_an_exact_graph(tmp_path: Path) -> None:
    points, memory = write(tmp_path / "points.npy", 6000, 1024), 12_000_000
    found = peak(points, memory, "exact")
    assert points.stat().st_size > 2 * memory
    assert memory / 4 < found["peak"] <= memory, found  # the minimum: the measurement detects something


@pytest.mark.full
def test_the_peak_of_pairs_of_slabs(tmp_path: Path) -> None:
    points, memory = write(tmp_path / "points.npy", 30_000, 512), 52_000_000
    found = peak(points, memory, "exact", isa="generic")
    assert found["route"] == "exact-pairs"
    assert memory / 4 < found["peak"] <= memory, found


@pytest.mark.full
@pytest.mark.parametrize("memory", [30_000_000, 40_000_000])
def test_the_peak_of_shards_of_clusters(memory: int, tmp_path: Path) -> None:
    points = write(tmp_path / "points.npy", 24_000, 512)
    found = peak(points, memory, "clusters")
    assert memory / 4 < found["peak"] <= memory, found


@pytest.mark.parametrize("method", ROUTES)
def test_too_little_memory_says_how_much_is_needed(method: str, tmp_path: Path) -> None:
    points = np.random.default_rng(0).standard_normal((3000, 64)).astype(np.float32)
    with pytest.raises(BudgetExceeded, match=rf"memory=1000000: method='{method}' needs at least \d+ bytes") as refused:
        tonari.build_graph(points, 10, tmp_path / "graph", method=method, memory="1MB")
    enough = int(str(refused.value).split("at least ")[1].split(" ")[0])
    assert 1_000_000 < enough < 100_000_000
    sizes = Sizes(as_source(points), 10, "euclidean", None if method == "exact" else 0.99, (), None)
    assert plan_build(sizes, method, enough).host_bytes <= enough
    with pytest.raises(BudgetExceeded):
        plan_build(sizes, method, enough // 2)
