"""tang2015: the selection's share of the time of a search, on small data in host memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import done

torch = pytest.importorskip("torch", reason="the distances are torch's")

from benchmarks.harness.proof import WrongAnswer  # noqa: E402
from benchmarks.harness.proof.selection import Proof  # noqa: E402
from benchmarks.papers.tang2015 import SUITE, share  # noqa: E402
from tonari.metrics.reference import pairwise  # noqa: E402


def test_distances_are_one_product() -> None:
    rows = np.random.default_rng(5).random((30, 7), dtype=np.float32)
    found = share.distances_of(torch.from_numpy(rows[:11]), torch.from_numpy(rows[11:]))
    np.testing.assert_allclose(found.numpy() ** 2, pairwise(rows[:11], rows[11:], "sqeuclidean"), atol=1e-5)


def test_every_part_of_a_search_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "KS", (16, 80))
    (case,) = SUITE.chosen("cpu", ["share"])
    run = done(bench_checks.a_run(), case.resized(n=300, m=20, d=8, k=80))
    assert run.wrong == 0
    parts = [(row["extras"]["series"], row["k"]) for row in run.rows]
    assert parts[0] == ("distances", None)
    names = ("insertion", "heap", "merge", "whole", "search")
    assert sorted(parts[1:]) == sorted((name, k) for name in names for k in (16, 80))
    assert all(row["proved"] for row in run.rows[1:])


def test_copied_distances_are_selected_from_on_all_cores() -> None:
    run = bench_checks.a_run()
    (case,) = SUITE.chosen("cpu", ["share"])
    matrix = torch.rand((20, 300))
    proof = Proof(matrix, 16)
    share.selections(run, case, proof, matrix.clone())
    host = run.rows[-1]
    assert host["extras"]["series"] == "host"
    assert host["parameters"]["threads"] >= 1
    assert host["proved"]
    with pytest.raises(WrongAnswer):
        share.selections(run, case, proof, 1 - matrix)
