"""Bytes of searches among sparse rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tonari

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import METRICS, words  # noqa: E402
from tonari.sparse.cpu.search import PreparedSparse  # noqa: E402
from tonari.sparse.memory import packed_bytes  # noqa: E402
from tonari.sparse.rows import Ranking, as_sparse_rows  # noqa: E402


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [1, 40, 5000])
def test_prepared_points_take_no_more_than_planned(metric: str, n: int) -> None:
    rows = as_sparse_rows(sparse.csr_array(words(n, 80).astype(np.float32)), "points")
    prepared = PreparedSparse(rows, Ranking(rows), metric)
    held = prepared.native.bytes() + prepared.ranking.points.nbytes
    planned = packed_bytes(n, prepared.ranking.counts, metric)
    assert held <= planned <= 1.3 * held + 64


THIN = ("search", "radius_search")
REST = ("knn_graph", "kth_distance", "radius_count", "radius_graph", "pairs", "Index")
MARGIN = 3 << 19  # the allocator's slack, stacks, and Python's own objects

CHILD = """
import ctypes, json, re, sys
import numpy as np, scipy.sparse, tonari
from tonari.core.errors import BudgetExceeded

verbs, rng = json.loads(sys.argv[1]), np.random.default_rng(0)

def rows(kind, n=1500, d=1000, each=60):
    columns = np.minimum(rng.integers(0, d, (n, each)), rng.integers(0, d, (n, each)))  # some in many rows
    if kind == "copies":
        columns[:] = columns[0]
    values, ends = rng.random((n, each), np.float32), np.arange(0, n * each + 1, each)
    made = scipy.sparse.csr_matrix((values.ravel(), columns.ravel(), ends), (n, d))
    if kind == "copies":
        made.data[:] = 1
    if kind != "unsorted":
        made.sum_duplicates()
    return made

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

def call(verb, x, memory):
    options = dict(metric="cosine", threads=2, memory=memory)
    if verb == "Index":
        index = tonari.Index(x, **options)
        found = index.search(x, 10), index.radius_count(x, 0.3)
        return sum(part.nbytes for part in found[0])
    if verb == "search":
        found = tonari.search(x[:250], x, 10, **options)
    elif verb in ("knn_graph", "kth_distance"):
        found = getattr(tonari, verb)(x, 10, **options)
    else:
        found = getattr(tonari, verb)(*([x] * (1 + (verb in ("radius_search", "radius_count")))), radius, **options)
    if verb == "knn_graph":
        return found.indices.nbytes + found.distances.nbytes
    return sum(part.nbytes for part in found) if isinstance(found, tuple) else found.nbytes

small, found = rows("sorted", 300), []
for verb in verbs:
    radius = 0.5
    call(verb, small, None)  # whatever is loaded once is loaded
for verb in verbs:
    for kind in ("sorted", "unsorted", "copies"):
        x, budget, results = rows(kind), 1, 0
        radius = 1.0 if verb == "radius_count" else 0.5
        if kind == "copies" and verb in ("radius_search", "radius_graph", "pairs"):
            x = x[:500]
        elif kind == "copies" and verb == "search":
            x = rows(kind, 10_000, each=8)
        for _ in range(4):
            ctypes.CDLL(None).malloc_trim(0)  # else memory that is free already hides a peak
            open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from what is held now
            before = peak()
            try:
                results = call(verb, x, budget)
            except BudgetExceeded as error:
                budget = error.least + (2 << 20) * (kind == "copies")  # larger blocks, whose lists have many ties
            else:
                break
        found.append((verb, kind, budget, peak() - before, results))
print(json.dumps(found))
"""


@pytest.mark.process
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
@pytest.mark.parametrize("verbs", [THIN, pytest.param(REST, marks=pytest.mark.full)], ids=["thin", "rest"])
def test_every_verb_keeps_to_its_memory(verbs: tuple[str, ...]) -> None:
    made = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(verbs)],
        env=os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    measured = json.loads(made.stdout)
    assert {verb for verb, *_ in measured} == set(verbs)
    wrong = [row for row in measured if row[2] == 1 or row[3] > row[2] + 3 * row[4] + MARGIN]
    assert not wrong, measured
