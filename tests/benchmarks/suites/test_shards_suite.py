"""Graphs in a directory on small data: builds are measured and proved, and generated rows resemble real ones."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import done, notes

torch = pytest.importorskip("torch", reason="these benchmarks make their data with torch")

import tonari  # noqa: E402
from benchmarks.harness.datasets import synthesized  # noqa: E402
from benchmarks.harness.proof import WrongAnswer  # noqa: E402
from benchmarks.suites import shards  # noqa: E402


@pytest.fixture
def real() -> Any:
    """Make rows in some clusters of few dimensions, like descriptors."""
    rng = np.random.default_rng(0)
    centres, directions = rng.uniform(0, 150, (30, 128)), rng.standard_normal((30, 6, 128))
    of = rng.integers(30, size=3000)
    along = rng.standard_normal((3000, 6)) * np.linspace(12, 5, 6)
    rows = centres[of] + np.einsum("ij,ijk->ik", along, directions[of]) + rng.standard_normal((3000, 128))
    return rows.clip(0, 255).astype(np.uint8)


@pytest.fixture
def points(real: Any, monkeypatch: pytest.MonkeyPatch) -> synthesized.Synthesized:
    monkeypatch.setattr(synthesized, "BLOCK", 1000)
    return synthesized.Synthesized(4500, 24, "cpu", real)


def test_rows_are_the_same_however_they_are_asked_for(points: synthesized.Synthesized) -> None:
    whole = points.rows(0, 4500)
    assert whole.shape == points.shape
    assert torch.isfinite(whole).all()
    for begin, end in ((0, 1), (999, 1001), (1000, 2000), (4499, 4500), (500, 3700)):
        assert torch.equal(points.rows(begin, end), whole[begin:end])
    assert len(torch.unique(whole, dim=0)) == len(whole)


def hardness(rows: Any) -> tuple[float, float]:
    """Return the median local intrinsic dimension (Levina and Bickel), and the mean distance of the tenth neighbour."""
    distances = tonari.knn_graph(np.asarray(rows, np.float32), 20).distances.astype(np.float64)
    found = -1 / np.log(np.maximum(distances[:, :-1], 1e-9) / distances[:, -1:]).mean(axis=1)
    return float(np.median(found)), float(distances[:, 9].mean())


def test_rows_are_as_hard_as_those_they_learn_from(real: Any) -> None:
    made = synthesized.Synthesized(3000, 128, "cpu", real)
    ours, theirs = hardness(made.rows(0, 3000)), hardness(real)
    assert ours == pytest.approx(theirs, rel=0.3)


@pytest.mark.parametrize("route", ["exact", "clusters", "ggm"])
def test_a_build_is_measured_and_proved(
    route: str, points: synthesized.Synthesized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TONARI_SCRATCH", str(tmp_path))
    monkeypatch.setattr(shards, "points_of", lambda run, case: points)
    target = 0.0 if route == "exact" else 0.9
    parameters = {"routes": (route,), "memory": 60_000_000, "in_memory": True}
    case = bench_checks.a_case(n=4500, m=4500, d=24, k=5, target=target, parameters=parameters, work=shards.build)
    run = done(bench_checks.a_run(), case)
    assert {row.get("note") for row in run.rows} == {None}, notes(run)
    ours = [row for row in run.rows if row["who"] == f"tonari build_graph {route}"]
    assert {row["who"] for row in run.rows} == {"tonari knn_graph", f"tonari build_graph {route}"}
    assert ours[0]["recall"] >= target
    assert ours[0]["extras"]["disk_bytes"] > 4500 * 5 * 8
    assert not list(tmp_path.iterdir())


def test_the_update_is_passed_on_and_named() -> None:
    (case,) = (case for case in shards.SUITE.cases if case.name == "10m-gnnd")
    way = shards.Way("ggm", update=case.parameters["update"])
    assert way.who == "tonari build_graph ggm gnnd"
    assert shards.Way("ggm", 2, update="gnnd").who == "tonari build_graph ggm gnnd on 2 GPUs"
    assert shards.Way("ggm").who == "tonari build_graph ggm"


def test_a_wrong_distance_is_no_measurement(points: synthesized.Synthesized) -> None:
    case = bench_checks.a_case(n=4500, m=4500, d=24, k=5)
    whole = points.rows(0, 4500).numpy()
    graph = tonari.knn_graph(whole, 5)
    assert shards.recall_of(bench_checks.a_run(), case, points, graph) == 1
    lost = np.array(graph.indices)
    lost[:, 0] = (lost[:, 0] + 1) % 4500
    other = importlib.import_module("types").SimpleNamespace(indices=lost, distances=np.array(graph.distances) * 2)
    with pytest.raises(WrongAnswer, match="the distance to"):
        shards.recall_of(bench_checks.a_run(), case, points, other)
