"""Graphs within a radius on CUDA, the parts that need no GPU: wrong answers are not timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still
from tests.helpers.checks import gaussian
from tests.helpers.gpu_checks import DEVICE
from tonari.core.results.neighbors import Neighbors
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.metrics.reference import brute, brute_within

torch = pytest.importorskip("torch", reason="the benchmarks on GPUs make their data with torch")

from benchmarks.harness.proof import WrongAnswer  # noqa: E402
from benchmarks.suites import radius_cuda  # noqa: E402

H200 = {"kind": "cuda", "title": "NVIDIA H200, made up"}


def a_run() -> Any:
    return bench_checks.a_run(device=Still(lambda: 0.001, **H200), repeats=1, gpus=1, where=DEVICE)


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.usefixtures("cpu_for_cuda")
def test_a_small_graph_is_proved_and_timed(method: str) -> None:
    whole = {case.parameters["method"]: case for case in radius_cuda.SUITE.cases}[method]
    case = whole.resized(n=30, m=30, d=3, k=5, data="uniform" if method == "kdtree" else "gaussian")
    run = bench_checks.done(a_run(), case)
    assert run.wrong == 0, bench_checks.notes(run)
    within, nearest = run.rows
    assert within["proved"] == radius_cuda.PROVED_ROWS
    assert within["passed"] is True
    assert nearest["ratio"] == 1


@pytest.mark.parametrize("wrong", ["missing", "another", "too many"])
def test_wrong_lists_are_found(wrong: str) -> None:
    rows = gaussian(12, 2)
    truth = brute_within(rows, rows, np.full(12, 1.0, np.float32), self_ids=np.arange(12))
    nearest = Neighbors(*map(torch.from_numpy, brute(rows, rows, 3, self_ids=np.arange(12))))
    found = RadiusNeighbors(*map(torch.from_numpy, truth))
    assert radius_cuda.check_lists(found, torch.from_numpy(rows), nearest, 1.0) == 12
    ids = found.indices.clone()
    if wrong == "another":
        ids[-1] = (ids[-1] + 1) % 12
        found = found._replace(indices=ids)
    elif wrong == "missing":
        ends = found.indptr.clone()
        ends[-1] -= 1
        found = RadiusNeighbors(ends, found.indices[:-1], found.distances[:-1])
    else:
        ends = found.indptr.clone()
        ends[-1] += 1
        found = RadiusNeighbors(ends, torch.cat([ids, ids[:1]]), torch.cat([found.distances, found.distances[:1] + 9]))
    with pytest.raises(WrongAnswer):
        radius_cuda.check_lists(found, torch.from_numpy(rows), nearest, 1.0)
