"""The promises on small data: recall on hard data, ties, memory and UMAP's weights are measured and drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.rows import read
from benchmarks.suites import promises
from tests.helpers.bench_checks import a_run, done, notes

SMALL = {case.name: case.scaled(0.02) for case in promises.SUITE.cases}


@pytest.mark.parametrize("name", ["offset", "tight"])
def test_float32_products_lose_neighbours_that_tonari_finds(name: str) -> None:
    pytest.importorskip("torch", reason="a peer")
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    found = {who: [row["recall"] for row in ran.rows if row["who"] == who] for who in ("tonari", "torch cdist")}
    assert set(found["tonari"]) == {1.0}
    assert found["torch cdist"][0] > 0.99
    assert found["torch cdist"][-1] < 0.9  # in a cloud of few rows, many are neighbours anyway


def test_other_neighbours_than_by_the_definition_are_found_out() -> None:
    class Wrong:
        @staticmethod
        def search(queries: np.ndarray, points: np.ndarray, k: int, **given: object) -> object:
            import tonari

            found = tonari.search(queries, points, k)
            return found._replace(indices=found.indices[:, ::-1])

    ran = done(a_run(Wrong), SMALL["offset"])
    assert ran.wrong == 1
    assert "other neighbours than by the definition" in notes(ran)


def test_ties_are_in_order() -> None:
    pytest.importorskip("torch", reason="a peer")
    ran = done(a_run(), SMALL["ties"])
    assert ran.wrong == 0, notes(ran)
    assert {row["extras"]["ordered"] for row in ran.rows if row["who"] == "tonari"} == {1.0}
    assert min(row["extras"]["ordered"] for row in ran.rows if row["who"] == "torch cdist") < 1


def test_memory_is_planned_within_the_limit() -> None:
    ran = done(a_run(), SMALL["memory"])
    assert ran.wrong == 0, notes(ran)
    assert [row["parameters"]["value"] for row in ran.rows] == list(promises.MEGABYTES)
    assert all(row["extras"]["planned"] <= 10**6 * row["parameters"]["value"] for row in ran.rows)


def test_weights_are_those_of_an_exact_self(tmp_path: Path) -> None:
    pytest.importorskip("umap", reason="whose weights these are")
    ran = done(a_run(), SMALL["weights"])
    assert ran.wrong == 0, notes(ran)
    ours = next(row["extras"] for row in ran.rows if row["who"] == "tonari")
    assert ours["selves_above_0"] == 0
    assert ours[promises.WEIGHTS][0] == 1
    assert np.all(np.diff(ours[promises.WEIGHTS]) <= 0)


def test_rows_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="what draws")
    drawn = [figure.write(tmp_path) for figure in promises.figures(list(read(promises.SUITE.path)))]
    names = ["recall-offset", "recall-tight", "umap-weights", "ties", "memory"]
    assert [path.name for path in drawn if path] == [f"{name}.svg" for name in names]
    assert list(promises.figures([])) == []
