"""Searches with masks and graphs of clouds on small data are measured and proved, and a wrong answer is not timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari
from benchmarks.suites import filters
from tests.helpers.bench_checks import Still, a_run, done, notes
from tests.helpers.device_rows import DEVICE
from tests.helpers.devices import needs_torch

CASES = {(case.name, case.device): case for case in filters.SUITE.cases}
SMALL = {name: case.scaled(0.004) for (name, device), case in CASES.items() if device == "cpu"}
ON_GPU = {name: case.resized(n=3000, m=3, d=4) for (name, device), case in CASES.items() if device == "cuda"}


@pytest.mark.parametrize("name", SMALL)
def test_a_case_is_proved_and_timed(name: str) -> None:
    ran = done(a_run(), SMALL[name].resized(peers=SMALL[name].peers[1:]))
    assert ran.wrong == 0, notes(ran)
    others = ["ckdtree"] if name == "clouds" else ["tonari-gather", "tonari-unfiltered"]
    assert [row["who"] for row in ran.rows] == ["tonari", *others]
    assert ran.rows[0]["proved"] == min(filters.PROVED_ROWS, SMALL[name].m)
    assert name == "clouds" or ran.rows[0]["bar_on"] == "better"


@needs_torch
@pytest.mark.parametrize("name", [name for name in ON_GPU if "0.5" in name or "there" in name])
@pytest.mark.usefixtures("cpu_for_cuda")
def test_a_case_of_a_gpu_has_tensors_there(name: str) -> None:
    ran = done(a_run(device=Still(kind="cuda", title="a GPU, made up"), where=DEVICE), ON_GPU[name])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == ["tonari", "tonari-gather", "tonari-unfiltered", "tonari-index"]
    assert ran.rows[0]["bar_on"] == "better"


@pytest.mark.parametrize("name", ["once-0.5", "clouds"])
def test_a_wrong_answer_is_found(name: str) -> None:
    def spoilt(verb: str) -> Any:
        def call(*given: Any, **options: Any) -> Any:
            found = getattr(tonari, verb)(*given, **options)
            return tonari.Neighbors(np.nextafter(found.distances, np.float32(0)), found.indices)

        return call

    library = SimpleNamespace(search=spoilt("search"), knn_graph=spoilt("knn_graph"))
    ran = done(a_run(library), SMALL[name].resized(peers=()))
    assert ran.wrong == 1
    assert "differs from the reference" in notes(ran)
