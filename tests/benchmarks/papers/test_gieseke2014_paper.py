"""gieseke2014 on small data in host memory: its figures have their points, and its rounds find the neighbours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still, a_run, done, notes

torch = pytest.importorskip("torch", reason="these benchmarks prove with torch")

from benchmarks.harness import contest  # noqa: E402
from benchmarks.harness import rows as results  # noqa: E402
from benchmarks.papers.gieseke2014 import figures, plots, rounds  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "SETTLE_SECONDS", 0.0)


def a_case(**changes: Any) -> Any:
    """A small case of magnitudes, or with ``changes``."""
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
    tree = [row for row in run.rows if row["who"] == "tonari kdtree"]
    assert len({row["extras"].get(axis, row.get(axis)) for row in tree}) >= least
    assert all(row["seconds_median"] > 0 for row in tree)
    written = results.read(path)
    assert len(list(plots.curves(figure, written))) == len(run.rows)
    if figure == "2":  # drawing takes a second
        (drawn,) = plots.draw_all(written, tmp_path)
        assert drawn.name == f"kdtree-gieseke2014-fig{figure}-cpu.svg"
        assert "a machine, made up" in drawn.read_text()


def test_every_figure_has_its_panels() -> None:
    rows = results.read(results.RESULTS / "kdtree.csv")
    for figure in plots.TITLES:
        own = [row for row in rows if row["figure"] == figure]
        assert plots.panels(figure, own)[0].curves


def test_what_takes_long_is_timed_on_fewer_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "PILOT_ROWS", {"cpu": 10})
    monkeypatch.setattr(figures, "LONGEST", 4.0)
    asked: list[int] = []

    def call_of(count: int) -> Callable[[], None]:
        return lambda: asked.append(count)

    # Ten rows take two seconds: sixty would take twelve.
    assert figures.rows_for(a_run(device=Still(lambda: 2.0)), a_case(), call_of) == 20
    assert set(asked) == {10}
    assert figures.rows_for(a_run(device=Still(lambda: 0.1)), a_case(), call_of) == 60


# --- rounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "buffer", "few"), [(80, 1, 0), (25, 8, 0), (9, 1000, 0), (80, 1, 8), (25, 8, 80)])
@pytest.mark.parametrize(("n", "d", "height", "k"), [(700, 3, 4, 5), (300, 6, 5, 12), (50, 2, 0, 50), (64, 1, 5, 9)])
def test_rounds_find_the_neighbours(
    n: int, d: int, height: int, k: int, batch: int, buffer: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "TILE", {"cpu": 8})
    monkeypatch.setattr(rounds, "BLOCK", {"cpu": 5000})
    rng = np.random.default_rng(n + d)
    # Whole numbers: squares are exact in float32, and ties are many.
    points = rng.integers(0, 12, (n, d)).astype(np.float32)
    queries = rng.integers(-2, 14, (80, d)).astype(np.float32)
    run = a_run()
    search = rounds.Rounds(rounds.record_of(run, torch.from_numpy(points), height), "cpu", k, batch, buffer, few)
    squares, found = search.search(torch.from_numpy(queries))
    expected = brute(queries, points, k, "sqeuclidean").distances
    np.testing.assert_array_equal(squares.numpy(), expected)
    true = ((queries[:, None].astype(np.float64) - points[found.numpy()]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(true, expected)
    assert (np.diff(np.sort(found.numpy(), axis=1), axis=1) > 0).all()
    counted = search.counters
    assert counted.brute == (0 if few == 0 else counted.brute)
    assert few or counted.leaves >= 80
    assert counted.emptied <= counted.rounds


def test_buffers_are_emptied_less_often_than_rounds_are_made() -> None:
    rng = np.random.default_rng(0)
    points, queries = (torch.from_numpy(rng.random((count, 3), dtype=np.float32)) for count in (2000, 800))
    record = rounds.record_of(a_run(), points, 5)
    eager = rounds.Rounds(record, "cpu", 5, 800, 1)
    lazy = rounds.Rounds(record, "cpu", 5, 80, 64)
    torch.testing.assert_close(eager.search(queries)[0], lazy.search(queries)[0], rtol=0, atol=0)
    assert eager.counters.emptied >= eager.counters.rounds - 1
    assert lazy.counters.emptied < 0.5 * lazy.counters.rounds
    # A query's traversal is its own: waiting changes nothing about the leaves that it visits.
    assert lazy.counters.leaves == eager.counters.leaves


def test_rounds_stand_beside_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "HEIGHTS", {"cpu": (4, 6, 13)})
    run = a_run(repeats=1)
    case = a_case(n=3000, m=60, work=rounds.compare)
    done(run, case)
    assert run.wrong == 0, notes(run)
    names = [row["who"] for row in run.rows]
    assert names[:3] == ["tonari kdtree", "tonari kdtree, as they came", "tonari exact"]
    by_rounds = [row for row in run.rows if row["who"].startswith("rounds")]
    assert {row["who"] for row in by_rounds} == {"rounds, buffers", "rounds, sorted each"}
    assert {row["extras"]["height"] for row in by_rounds} == {4, 6}  # of 13 leaves would be empty
    assert all(row["recall"] > 0.999 and row["ratio"] > 0 for row in by_rounds), notes(run)
