"""Copies of rows count towards `memory`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import gaussian
from tonari import inputs
from tonari.core.errors import BudgetExceeded
from tonari.metrics.transforms.change import change_for

N, M, D = 3000, 200, 40
PLAIN = np.abs(gaussian(N, D))
WHOLE = np.round(100 * PLAIN).astype(np.int64)
ANGLES = PLAIN[:, :2].astype(np.float64) / 4
SHARES = PLAIN / PLAIN.sum(axis=1, keepdims=True)
SLACK = 2 << 20  # blocks of rows that are converted at once


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (ANGLES, {"metric": "haversine"}),
        (PLAIN, {"metric": "minkowski:3"}),
        (PLAIN.astype(np.float64), {"metric": "minkowski:3"}),
        (PLAIN.astype(np.float16), {"metric": "l1", "weights": np.arange(D)}),
        (PLAIN, {"metric": "mahalanobis", "VI": 2 * np.eye(D)}),
        (PLAIN, {"metric": "hellinger"}),
        (SHARES, {"metric": "braycurtis"}),
    ],
    ids=lambda given: given["metric"] if isinstance(given, dict) else str(given.dtype),
)
def test_the_bytes_of_changed_rows_are_known_before(rows: Any, columns: dict[str, Any]) -> None:
    rows = np.ascontiguousarray(np.tile(rows, (20, 1)))
    change = change_for(**columns)
    assert change is not None
    change.rows(rows[:10], "points")
    expected = change.copied_bytes(rows.shape, str(rows.dtype))
    tracemalloc.start()
    changed = change.rows(rows, "points", 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert expected == (0 if changed is rows else changed.nbytes)
    assert peak <= expected + SLACK


@pytest.mark.parametrize(
    "x",
    [
        PLAIN,
        WHOLE,
        WHOLE.astype(np.uint16),
        np.asfortranarray(PLAIN),
        PLAIN[:, ::2],
        PLAIN.astype(">f4"),
        WHOLE.tolist(),
    ],
    ids=["plain", "int64", "uint16", "fortran", "strided", "big-endian", "list"],
)
def test_the_bytes_of_a_conversion_are_known_before(x: Any) -> None:
    tracemalloc.start()
    rows = inputs.as_rows(x, "points")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    copied = 0 if rows is x else rows.nbytes
    assert copied <= inputs.copied_bytes(x) <= 3 * copied
    assert peak <= inputs.copied_bytes(x) + SLACK // 8


def sufficient(call: Any, memory: int = 1) -> tuple[int, Any]:
    """Return a memory that is enough, by the refusals of less, and the answer for it."""
    for _ in range(5):
        try:
            return memory, call(memory)
        except BudgetExceeded as error:
            memory = max(memory + 1, error.least or 0)
    raise AssertionError("refused too often")


CALLS: dict[str, Any] = {
    "search": lambda x, **given: tonari.search(x[:M], x, 3, **given),
    "radius_count": lambda x, **given: tonari.radius_count(x[:M], x, 1.0, **given),
    "radius_search": lambda x, **given: tonari.radius_search(x[:M], x, 0.1, **given),
    "radius_graph": lambda x, **given: tonari.radius_graph(x, 0.1, **given),
    "pairs": lambda x, **given: tonari.pairs(x, 0.1, **given),
    "knn_graph": lambda x, **given: tonari.knn_graph(x, 3, **given),
    "kth_distance": lambda x, **given: tonari.kth_distance(x, 3, **given),
    "mutual_neighbors": lambda x, **given: tonari.mutual_neighbors(x[:M], x, 3, **given),
    "Index": lambda x, **given: tonari.Index(x, **given).search(x[:M], 3),
    "Index.radius_count": lambda x, **given: tonari.Index(x, **given).radius_count(x[:M], 1.0),
    "verify": lambda x, **given: tonari.verify(None, x, np.zeros((len(x), 1), int), sample=9, **given),
}


@pytest.mark.filterwarnings("ignore:memory=")
@pytest.mark.parametrize("name", CALLS)
def test_a_search_has_the_memory_that_copies_leave(name: str) -> None:
    whole, call, own = WHOLE[:400], CALLS[name], {"threads": 1}
    needed, _ = sufficient(lambda memory: call(whole.astype(np.float32), memory=memory, **own))
    copied = 4 * (D * 400 + (D * M if "Index" in name else 0))  # the queries of the others are a part of the points
    copied += 4 * D * M if name in ("search", "radius_count", "radius_search", "mutual_neighbors") else 0
    with pytest.raises(BudgetExceeded, match="copies of"):
        call(whole, memory=needed + copied - 1, **own)
    enough, _ = sufficient(lambda memory: call(whole, memory=memory, **own), needed + copied)
    assert enough <= 1.5 * (needed + copied)


def test_a_sparse_side_counts_when_it_becomes_dense() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    dense = np.where(PLAIN < 1.5, 0, PLAIN)[:400]
    points = sparse.csr_array(dense)
    for pair in ((dense[:M], points), (points[:M], dense), (points, dense[:M])):
        enough, found = sufficient(lambda memory, pair=pair: tonari.search(*pair, 3, memory=memory, threads=1))
        assert all((a == b).all() for a, b in zip(found, tonari.search(*pair, 3), strict=True))
        with pytest.raises(BudgetExceeded):
            tonari.search(*pair, 3, memory=enough - 1, threads=1)
    index, dense_bytes = tonari.Index(PLAIN, metric="l1", memory=10**8, threads=1), 4 * 400 * D
    with index._after_copies_of_queries(points) as taken:
        assert taken == dense_bytes
    assert (index.search(points, 3).indices == index.search(dense, 3).indices).all()


def test_the_other_side_is_converted_if_the_shorter_one_does_not_fit() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="matrices")
    points, wide = np.zeros((300, 20_000), np.float32), 20_000
    points[np.arange(300), np.arange(300)] = 1
    queries = sparse.csr_array((np.ones(200, np.float32), (np.arange(200), np.arange(200))), (200, wide))
    found = tonari.search(queries, points, 2, memory=8_000_000)  # the queries would take 16 MB
    assert (found.indices[:, 0] == np.arange(200)).all()


CHILD = """
import ctypes, json, re
import numpy as np, tonari
from tests.api.wrappers.test_copies import CALLS, WHOLE, PLAIN
from tonari.core.errors import BudgetExceeded

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

gaps = np.where(PLAIN < 0.1, np.float32(np.nan), PLAIN)
cases = [(WHOLE, {}), (gaps, {"metric": "nan_euclidean"}), (WHOLE, {"metric": "minkowski:3"})]
rows = []
for name in ("search", "Index"):
    for x, given in cases:
        CALLS[name](x[:300], threads=2, **given)
        x, budget = np.tile(x, (8, 1)), 1
        while True:
            ctypes.CDLL(None).malloc_trim(0)
            open("/proc/self/clear_refs", "w").write("5")
            before = peak()
            try:
                CALLS[name](x, threads=2, memory=budget, **given)
            except BudgetExceeded as error:
                budget = error.least + (4 << 20)  # larger slices
                continue
            rows.append((name, str(x.dtype), given.get("metric"), budget, peak() - before))
            break
print(json.dumps(rows))
"""


@pytest.mark.process
@pytest.mark.full
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
def test_peaks_with_copies_stay_within_the_budget() -> None:
    roots = Path(tonari.__file__).parents[1], Path(__file__).parents[3]
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    wrong = [row for row in json.loads(made.stdout) if row[4] > row[3] + (3 << 20)]
    assert not wrong
