"""Candidates that remain after contraction are counted on small data and drawn."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.harness.proof import WrongAnswer
from benchmarks.suites import contraction
from tests.helpers.bench_checks import a_run, done, notes

SMALL = {case.name: case.scaled(0.02) for case in contraction.SUITE.cases}


@pytest.mark.parametrize("name", ["clustered-784", "gaussian-128"])
def test_more_columns_leave_fewer_points(name: str, tmp_path: Path) -> None:
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    (row,) = ran.rows
    left = {int(columns): share for columns, share in row["extras"][contraction.LEFT].items()}
    assert max(left) < row["d"]
    assert list(left) == sorted(left)
    shares = np.array(list(left.values()))
    assert np.all(np.diff(shares) <= 0)
    assert 9 / row["n"] <= shares[-1] < shares[0] <= 1
    (figure,) = contraction.figures([row | {"scale": 1.0, "commit": "abcdef0", "date": "2026-01-01"}])
    drawn = figure.write(tmp_path)
    assert drawn == tmp_path / "contraction-survivors.svg"
    assert f"x {row['d']}" in drawn.read_text()


def test_nothing_is_drawn_of_no_rows() -> None:
    assert list(contraction.figures([])) == []


def test_columns_that_lose_a_neighbour_are_found_out() -> None:
    # Distances that are too small, as if contracted rows were farther apart than the original rows.
    def search(queries: np.ndarray, _: np.ndarray, k: int, **given: object) -> SimpleNamespace:
        return SimpleNamespace(distances=np.full((len(queries), k), -1e3, np.float32))

    run = SimpleNamespace(tonari=SimpleNamespace(search=search), threads=1)
    with pytest.raises(WrongAnswer, match="fewer than the 10"):
        contraction.survivors(run, SMALL["gaussian-128"])  # type: ignore[arg-type]
