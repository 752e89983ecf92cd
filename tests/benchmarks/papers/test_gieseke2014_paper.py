"""gieseke2014 on small data in host memory: its figures have points for both traversals."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still, a_run, done, notes

pytest.importorskip("torch", reason="these benchmarks prove with torch")

from benchmarks.harness import contest
from benchmarks.harness import rows as results
from benchmarks.papers.gieseke2014 import figures, plots, processors, rounds


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "SETTLE_SECONDS", 0.0)


def a_case(**changes: Any) -> Any:
    """Make a small case of magnitudes; ``changes`` replace its fields."""
    options = {"n": 500, "m": 60, "d": 3, "k": 5, "data": "magnitudes", "prepared": True}
    return bench_checks.a_case(**options | changes)


# --- figures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "axis", "least"),
    [(figures.heights, "height", 5), (figures.orders, "m", 3), (figures.neighbours, "k", 6), (figures.sizes, "n", 1)],
)
def test_figures_have_their_points(work: Any, axis: str, least: int, tmp_path: Path) -> None:
    path = tmp_path / "kdtree.csv"
    figure = {"height": "2", "m": "3a", "k": "5", "n": "6"}[axis]
    case = a_case(figure=figure, d=5, work=work, truth_k=64 if axis == "k" else 0)
    run = done(a_run(path=path, suite="gieseke2014"), case)
    assert run.wrong == 0, notes(run)
    for who in (figures.TREE, figures.BUFFERED):
        tree = [row for row in run.rows if row["who"] == who]
        assert len({row["extras"].get(axis, row.get(axis)) for row in tree}) >= least
        assert all(row["seconds_median"] > 0 for row in tree)
    written = results.read(path)
    assert len(list(plots.curves(figure, written))) == len(run.rows)
    if figure == "2":  # drawing takes a second
        (one,) = plots.figures(written)
        drawn = one.write(tmp_path)
        assert drawn == tmp_path / f"kdtree-gieseke2014-fig{figure}-cpu.svg"
        assert "a machine, made up" in drawn.read_text()


def test_every_figure_has_its_panels() -> None:
    rows = results.read(results.RESULTS / "kdtree.csv")
    for figure in plots.TITLES:
        own = [row for row in rows if row["figure"] == figure]
        assert not own or plots.panels(figure, own)[0].curves


def test_what_takes_long_is_timed_on_fewer_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "PILOT_ROWS", {"cpu": 10})
    monkeypatch.setattr(figures, "LONGEST", 4.0)
    asked: list[int] = []

    def call_of(count: int) -> Callable[[], None]:
        return lambda: asked.append(count)

    # Ten rows take two seconds; sixty would take twelve.
    assert figures.rows_for(a_run(device=Still(lambda: 2.0)), a_case(), call_of) == 20
    assert set(asked) == {10}
    assert figures.rows_for(a_run(device=Still(lambda: 0.1)), a_case(), call_of) == 60


# --- both traversals ----------------------------------------------------------------------------------------------


def test_table_2_has_both_traversals_and_brute_force() -> None:
    run = done(a_run(), a_case(work=figures.table))
    assert run.wrong == 0, notes(run)
    assert [row["who"] for row in run.rows] == [figures.TREE, figures.BUFFERED, "tonari exact"]


def test_processors_stand_beside_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the processor have its number of threads, and each row of the device has its own ratio to them."""
    monkeypatch.setattr(processors.Cpu, "once", lambda self, call: (call(), 6.0)[1])
    run = done(a_run(repeats=1, device=Still(lambda: 2.0)), a_case(work=processors.compare))
    assert run.wrong == 0, notes(run)
    all_cores, one_core, walk, buffered = run.rows
    assert [row["who"] for row in run.rows] == [
        *(processors.ALL_CORES, processors.ONE_CORE),
        *(figures.TREE, figures.BUFFERED),
    ]
    assert (one_core["threads"], all_cores["threads"]) == (1, len(os.sched_getaffinity(0)))
    assert one_core["extras"]["buffer"] > 0
    assert "buffer" not in all_cores["extras"]
    for row in (walk, buffered):
        assert (row["extras"]["over_all_cores"], row["extras"]["over_one_core"]) == (3.0, 3.0)


def test_rounds_stand_beside_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "HEIGHTS", (4, 6, 13))
    run = done(a_run(repeats=1), a_case(n=3000, m=60, work=rounds.compare))
    assert run.wrong == 0, notes(run)
    walk, buffered = figures.TREE, figures.BUFFERED
    names = [row["who"] for row in run.rows]
    assert names[:5] == [walk, buffered, f"{walk}, as they came", f"{buffered}, as they came", "tonari exact"]
    assert names[5:] == [walk, buffered] * 2
    low = run.rows[5:]
    assert [row["extras"]["height"] for row in low] == [4, 4, 6, 6]  # one of 13 leaves would be empty
    assert [row["ratio"] for row in low[::2]] == [1, 1]
    assert all("rounds, buffers emptied" in row["note"] and row["extras"]["tile"] >= 1 for row in low[1::2])


def test_phases_are_timed_and_drawn(tmp_path: Path) -> None:
    path = tmp_path / "kdtree.csv"
    run = done(a_run(path=path, suite="gieseke2014"), a_case(figure="4", work=rounds.phases))
    assert run.wrong == 0, notes(run)
    assert len({row["m"] for row in run.rows}) >= 3
    for row in run.rows:
        assert row["who"] == figures.BUFFERED
        assert row["extras"]["find_seconds"] > 0
        assert row["extras"]["process_seconds"] > 0
    series = {name for name, _, _ in plots.curves("4", results.read(path))}
    assert series == {"everything", "finding leaves", "comparing queries with leaves"}  # nothing is sorted on the CPU
