"""Searches among rows of bits on small data are measured and proved, and a wrong answer is not timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import tonari
from benchmarks.suites import bits
from tests.helpers.bench_checks import Still, a_run, done, notes
from tests.helpers.device_rows import DEVICE
from tests.helpers.devices import needs_torch

SMALL = {case.name: case.scaled(0.002) for case in bits.SUITE.cases if case.device == "cpu"}
ON_GPU = {case.name: case.resized(n=60, m=3, d=4, k=5) for case in bits.SUITE.cases if case.device == "cuda"}


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_proved_and_timed(name: str) -> None:
    ran = done(a_run(), SMALL[name].resized(peers=()))
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari"]
    assert ran.rows[0]["proved"] > 0


@needs_torch
@pytest.mark.parametrize("name", ON_GPU)
@pytest.mark.usefixtures("cpu_for_cuda")
def test_a_case_of_a_gpu_is_held_to_seconds(name: str) -> None:
    ran = a_run(device=Still(lambda: 0.5, kind="cuda", title="NVIDIA H200, made up"), where=DEVICE)
    done(ran, ON_GPU[name])
    assert ran.wrong == 0, notes(ran)
    assert [(row["who"], row["bar_on"], row["value"], row["passed"]) for row in ran.rows] == [
        ("tonari", "seconds", 0.5, True)
    ]


def test_a_wrong_answer_is_found() -> None:
    def search(*given: Any, **options: Any) -> Any:
        found = tonari.search(*given, **options)
        return tonari.Neighbors(found.distances + 1, found.indices)

    ran = done(a_run(SimpleNamespace(search=search)), SMALL["hamming-256"].resized(peers=()))
    assert ran.wrong == 1
    assert "differs from the reference" in notes(ran)


def test_the_peer_agrees() -> None:
    pytest.importorskip("faiss")
    ran = done(a_run(), SMALL["hamming-256"])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari", bits.PEER]
