"""NN-Descent on small data in host memory: a graph with a false report is not timed, and recall is measured correctly.

The graphs are exact ones with known faults; seconds are made up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still, done, notes

torch = pytest.importorskip("torch", reason="these benchmarks make their data with torch")

import tonari  # noqa: E402
from benchmarks.harness import memory, rows  # noqa: E402
from benchmarks.harness.case import Bar  # noqa: E402
from benchmarks.harness.datasets import clusters as data  # noqa: E402
from benchmarks.harness.peers import graphs as peers  # noqa: E402
from benchmarks.papers import wang2021  # noqa: E402
from benchmarks.suites.nn_descent import SUITE, build, contestants, curves, figures, merge  # noqa: E402
from tonari.metrics.recall import Recall  # noqa: E402

N, K = 400, 12


class Library:
    """tonari, except that in its NN-Descent every ``lose``-th row lacks its nearest neighbour, as its report says."""

    Index, search = tonari.Index, staticmethod(tonari.search)

    def __init__(self, lose: int = 10, spoil: Callable[[Any, Any], None] | None = None) -> None:
        self.lose, self.spoil, self.asked = lose, spoil, list[dict[str, Any]]()

    def plan(self, n: int, m: int, d: int, k: int, **given: Any) -> Any:
        return SimpleNamespace(n=n, k=k, **given)

    def knn_graph(
        self, points: Any, k: int, *, method: str = "auto", threads: int | None = None, progress: Any, **given: Any
    ) -> Any:
        self.asked.append({"method": method, "n": len(points)} | given)
        found = tonari.knn_graph(points, k + 1, method="exact", threads=threads, progress=False)
        for ticks in range(3 if callable(progress) else 0):  # the start and two rounds
            progress(ticks, 2)
        if method != "nn-descent":
            exact = found.distances[:, :k].copy(), found.indices[:, :k].copy()
            return SimpleNamespace(distances=exact[0], indices=exact[1], method="exact", report=None)
        distances, indices = found.distances[:, :k].copy(), found.indices[:, :k].copy()
        distances[:: self.lose], indices[:: self.lose] = (
            part[:: self.lose, 1:] for part in (found.distances, found.indices)
        )
        if self.spoil is not None and len(points) == N:
            self.spoil(distances, indices)
        rounds = (SimpleNamespace(phi=9.0, changed=50), SimpleNamespace(phi=7.5, changed=3))
        estimate = Recall(0.9, 0.91, 0.89, 0.93, 50, k)
        report = SimpleNamespace(estimate=estimate, reached=False, start="clusters", rounds=rounds)
        return SimpleNamespace(distances=distances, indices=indices, method="nn-descent", report=report)

    def merge(self, first: Any, second: Any, points: Any, others: Any, **given: Any) -> Any:
        given.pop("recall"), given.pop("seed")
        return self.knn_graph(np.concatenate([points, others]), first.indices.shape[1], method="nn-descent", **given)


def a_run(library: Any = None, **changes: Any) -> Any:
    """Make a run on a machine of two threads with fixed times."""
    return bench_checks.a_run(library or Library(), **changes)


def a_case(**changes: Any) -> Any:
    """Make a small graph; ``changes`` replace its fields."""
    options = {"n": N, "m": N, "d": 16, "k": K, "graph": True, "target": 0.9, "work": build.build}
    return bench_checks.a_case(**options | changes)


def row_of(run: Any, who: str) -> dict[str, Any]:
    return next(row for row in run.rows if row["who"] == who)


# --- proof -------------------------------------------------------------------------------------------------------


def test_a_graph_is_proved_timed_and_written(tmp_path: Path) -> None:
    bars = Bar("recall@k", 0.99, home=""), Bar("seconds", 1.0, most=True, home="")
    run = done(a_run(path=tmp_path / "nn_descent.csv"), a_case(auto=True, bars=bars))
    assert run.wrong == 0, notes(run)
    ours = row_of(run, "tonari nn_descent")
    # One of ten rows has lost one of its twelve neighbours, and one of its first ten.
    assert ours["recall"] == pytest.approx(1 - 1 / (10 * K))
    assert ours["recall_low"] < ours["recall"] <= ours["recall_high"]
    more = ours["extras"]
    assert more["recall_10"] == pytest.approx(1 - 1 / 100)
    assert (more["phi"], more["changed"], more["rounds"]) == ([9.0, 7.5], [50, 3], 2)
    assert (more["target"], more["estimate"], more["reached"], more["start"]) == (0.9, 0.91, False, "clusters")
    assert ours["proved"] == N
    assert more["input_bytes"] == N * 16 * 4
    assert ours["seconds_median"] == pytest.approx(0.001)
    exact = row_of(run, "tonari exact")
    assert (exact["extras"]["recall_10"], exact["recall"], exact["ratio"]) == (1.0, 1.0, pytest.approx(1.0))
    assert row_of(run, "tonari auto")["note"] == "auto chose exact"
    assert [row["who"] for row in rows.read(tmp_path / "nn_descent.csv")] == [row["who"] for row in run.rows]


def test_the_real_thing_passes_the_same_proof() -> None:
    run = done(a_run(tonari, repeats=1), a_case(data="mixture", auto=True, parameters={"n_hubs": 8}))
    assert run.wrong == 0, notes(run)
    ours = row_of(run, "tonari nn_descent")
    assert ours["recall"] > 0.9
    assert ours["recall_low"] <= ours["extras"]["estimate"] <= 1
    assert len(ours["extras"]["phi"]) == ours["extras"]["rounds"]
    assert ours["parameters"]["n_hubs"] == 8


def test_the_real_merge_passes_it_too() -> None:
    run = done(a_run(tonari, repeats=1), a_case(data="mixture", split=150, work=merge.merge))
    assert run.wrong == 0, notes(run)
    assert row_of(run, "tonari merge")["recall"] > 0.9
    assert row_of(run, "tonari merge")["ratio"] == pytest.approx(1.0)


def farther(distances: Any, indices: Any) -> None:
    distances[7, -1] += 1


def itself(distances: Any, indices: Any) -> None:
    indices[7, 0], distances[7, 0] = 7, 0.0


def twice(distances: Any, indices: Any) -> None:
    indices[7, -1], distances[7, -1] = indices[7, -2], np.nextafter(distances[7, -2], np.float32(np.inf))


def unordered(distances: Any, indices: Any) -> None:
    for part in (distances, indices):
        part[7] = part[7, ::-1].copy()


def nobody(distances: Any, indices: Any) -> None:
    indices[7, -1], distances[7, -1] = -1, np.inf


def a_neighbours_value(distances: Any, indices: Any) -> None:
    indices[7, 0] = next(i for i in range(N) if i != 7 and i not in indices[7])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (farther, "row 7 has a distance that is not that of its point"),
        (itself, "row 7 holds itself"),
        (twice, "row 7 holds a point twice"),
        (unordered, "row 7 is out of order"),
        (nobody, "row 7 names a point that does not exist"),
        (a_neighbours_value, "row 7 has a distance that is not that of its point"),
    ],
)
def test_a_wrong_graph_is_not_timed(spoil: Any, message: str) -> None:
    run = done(a_run(Library(spoil=spoil), who=("tonari nn_descent",)), a_case())
    assert run.wrong == 1
    assert len(run.rows) == 1
    assert f"WRONG: {message}" in notes(run)
    assert "seconds_median" not in run.rows[0]


def test_a_graph_that_is_another_when_it_is_made_again_is_wrong() -> None:
    library = Library()
    calls = []

    def spoil(distances: Any, indices: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            distances[5], indices[5] = distances[5] * 2, indices[5, ::-1]

    library.spoil = spoil
    run = done(a_run(library, who=("tonari nn_descent",)), a_case())
    assert len(calls) == 3  # one check, two rounds
    assert "WRONG: distance of row 5: made again, the graph is another" in notes(run)
    assert all("seconds_median" not in row for row in run.rows)


def test_an_exact_engine_that_is_wrong_proves_nothing() -> None:
    class Off(Library):
        @staticmethod
        def search(queries: Any, points: Any, k: int, **options: Any) -> Any:
            found = tonari.search(queries, points, k, **options)
            found.distances[1, -1] += 1
            return found

    run = done(a_run(Off()), a_case())
    assert run.wrong == 1
    assert "the exact engine is wrong" in notes(run)


# --- bars and rows -----------------------------------------------------------------------------------------------


def test_time_is_worth_nothing_without_recall() -> None:
    bars = (
        Bar("recall@10", 0.999, home=""),
        Bar("seconds", 1.0, most=True, home=""),
        Bar("memory", 1e9, most=True, home=""),
    )
    passed = {row["bar_on"]: row["passed"] for row in done(a_run(), a_case(bars=bars)).rows if row.get("bar_on")}
    assert passed == {"recall@10": False, "seconds": False, "memory": True}
    met = done(a_run(Library(lose=N)), a_case(bars=bars)).rows
    assert all(row["passed"] for row in met if row.get("bar_on"))


def test_what_may_be_taken_is_the_input_a_copy_and_three_graphs() -> None:
    run, case = a_run(), a_case(dtype="float16")
    assert build.allowed_bytes(run, case) == N * 16 * (2 + 4) + 3 * N * K * 8


def test_the_most_memory_of_a_call_is_seen() -> None:
    peak = memory.Peak("cpu")
    if peak.bytes() is None:
        pytest.skip("this kernel does not set the largest resident set back")
    size = 1 << 26
    block = np.ones(size, np.uint8)
    del block
    assert 0.9 * size < peak.bytes() < 2 * size
    assert memory.Peak("cpu").bytes() < 0.5 * size


def test_slices_are_scaled() -> None:
    run = done(a_run(), a_case(exact_rows=100))
    assert run.wrong == 0, notes(run)
    exact = row_of(run, "tonari exact")
    assert exact["rows_timed"] == 100
    assert exact["seconds_median"] == pytest.approx(0.004)


def test_long_work_is_not_done_again() -> None:
    library = Library()
    run = done(a_run(library, device=Still(lambda: 21.0), who=("tonari nn_descent",)), a_case())
    assert run.wrong == 0, notes(run)
    assert [asked["n"] for asked in library.asked] == [N]
    assert run.rows[0]["repeats"] == 1
    assert run.rows[0]["seconds_median"] == 21.0


def test_everything_is_compiled_with_few_points_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contestants, "WARM_ROWS", 150)
    library = Library()
    done(a_run(library, who=("tonari nn_descent",)), a_case())
    assert [asked["n"] for asked in library.asked] == [150, N, N, N]


def test_settings_beside_the_arguments_are_of_the_plan() -> None:
    library = Library()
    done(a_run(library, who=("tonari nn_descent",)), a_case(parameters={"n_probe": 3}))
    plan = library.asked[0]["plan"]
    assert (plan.n_probe, plan.recall, plan.seed, plan.method, plan.n, plan.k) == (3, 0.9, 0, "nn-descent", N, K)
    assert set(library.asked[0]) == {"method", "n", "plan"}


# --- merging, curves, peers --------------------------------------------------------------------------------------


def test_merging_is_measured_against_the_whole() -> None:
    seconds = iter([0.004, 0.001] * 3)
    bars = (
        Bar(merge.OF_WHOLE, 0.5, most=True, home=""),
        Bar(merge.BELOW_WHOLE, 0.003, most=True, home=""),
    )
    run = a_run(device=Still(lambda: next(seconds)))
    done(run, a_case(split=150, work=merge.merge, bars=bars))
    assert run.wrong == 0, notes(run)
    first, second, whole = run.rows
    assert (first["who"], second["who"], whole["who"]) == ("tonari merge", "tonari merge", "tonari nn_descent")
    assert first["value"] == pytest.approx(0.25)
    assert second["value"] == pytest.approx(0.0)
    assert first["passed"] is second["passed"] is True
    assert [asked["n"] for asked in run.tonari.asked[:2]] == [150, N - 150]


def test_curves_have_a_row_for_every_setting() -> None:
    run = done(a_run(repeats=1), a_case(work=curves.curve))
    assert run.wrong == 0, notes(run)
    assert [row["who"] for row in run.rows] == ["tonari exact", *(name for name, _ in curves.ours())]
    random = [row for row in run.rows if row["who"] == curves.RANDOM]
    assert (random[0]["parameters"]["list_size"], random[0]["parameters"]["n_hubs"]) == (64, 32)
    assert random[0]["extras"]["target"] == pytest.approx(0.999)


def pushed(monkeypatch: pytest.MonkeyPatch, update: str, *lose: int, spoil: Callable[[Any, Any], None]) -> Any:
    """Make a run in which wang2021's rounds leave graphs with these losses, one after another; the last is spoilt."""
    asked: list[dict[str, Any]] = []

    def build(points: Any, k: int, **given: Any) -> Any:
        asked.append(given)
        last = len(asked) == len(lose)
        library = Library(lose[len(asked) - 1], spoil if last else None)
        return library.knn_graph(points.numpy(), k, method="nn-descent", progress=False)

    monkeypatch.setattr(wang2021.contestants.pushing, "build", build)
    monkeypatch.setattr(contestants, "WARM_ROWS", 150)
    monkeypatch.setattr(wang2021.figures, "ROUNDS", (4,))
    work = wang2021.figures.curve if update in wang2021.figures.UPDATES else wang2021.figures.ablation
    run = done(a_run(who=(f"wang2021 {update}",)), a_case(work=work))
    assert len(asked) == len(lose)
    assert all(given["update"] == update and given["rounds"] == 4 for given in asked)
    return run


def unspoilt(distances: Any, indices: Any) -> None:
    pass


@pytest.mark.parametrize("update", ["locks", "proposals", "r1", "r2"])
def test_rounds_that_push_have_a_row_for_each_number(update: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pushed(monkeypatch, update, 10, 10, 10, 10, spoil=unspoilt)
    assert run.wrong == 0, notes(run)
    (row,) = run.rows
    assert (row["who"], row["proved"]) == (f"wang2021 {update}", N)
    assert (row["extras"]["rounds"], row["extras"]["start"]) == (4, "random")
    assert row["recall"] == pytest.approx(1 - 1 / (10 * K))
    assert row["parameters"] == {"rounds": 4, "list_size": 64, "samples": 32}


def test_only_behind_locks_another_run_may_make_another_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    for update in ("locks", "r1", "r2"):
        run = pushed(monkeypatch, update, 10, 10, 10, 7, spoil=unspoilt)
        assert run.wrong == 0
        assert "WRONG" not in notes(run)
    run = pushed(monkeypatch, "proposals", 10, 10, 10, 7, spoil=unspoilt)
    assert "made again, the graph is another" in notes(run)
    run = pushed(monkeypatch, "locks", 10, 10, 10, 10, spoil=farther)
    assert "WRONG: row 7 has a distance that is not that of its point" in notes(run)


def test_the_product_has_a_row_for_each_number_of_rounds_and_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wang2021.figures, "ROUNDS", (4, 6))
    library = Library()
    run = done(a_run(library, who=("tonari gnnd*",), repeats=1), a_case(work=wang2021.figures.curve))
    assert run.wrong == 0, notes(run)
    told = [(row["parameters"]["samples"], row["parameters"]["rounds"]) for row in run.rows]
    assert told == [(16, 4), (16, 6), (32, 4), (32, 6)]
    plan = library.asked[0]["plan"]
    assert (plan.update, plan.samples, plan.rounds, plan.recall) == ("gnnd", 16, 4, 0.999)


def test_each_round_has_a_row_with_its_sum_and_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(Library):
        def knn_graph(self, points: Any, k: int, *, progress: Any, **given: Any) -> Any:  # type: ignore[override]
            if callable(progress):
                for done in range(4):  # the start, two rounds, the end
                    progress(done, 3)
            return super().knn_graph(points, k, progress=False, **given)

    monkeypatch.setattr(contestants, "WARM_ROWS", 150)  # so that some rows warm up
    library = Counting()
    run = done(a_run(library), a_case(name="phi-tests", work=wang2021.figures.phi))
    assert run.wrong == 0, notes(run)
    assert [(row["who"], row["extras"]["round"], row["extras"]["phi"]) for row in run.rows] == [
        ("tonari random start", 1, 9.0),
        ("tonari random start", 2, 7.5),
        ("tonari gnnd", 1, 9.0),
        ("tonari gnnd", 2, 7.5),
    ]
    seconds = [row["extras"]["seconds"] for row in run.rows[:2]]
    assert 0 < seconds[0] <= seconds[1]
    warmed, ours, also_warmed, theirs = (asked["plan"] for asked in library.asked if "plan" in asked)
    assert (warmed.n, also_warmed.n, ours.n) == (150, 150, 400)
    assert (ours.start, ours.list_size, ours.seed) == (theirs.start, theirs.samples, theirs.seed) == ("random", 32, 0)


def test_halves_are_merged_by_both_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wang2021.figures, "RECALLS", (0.9, 0.95))
    library = Library()
    case = a_case(name="ggm-tests", split=150, work=wang2021.figures.ggm)
    run = done(a_run(library, repeats=1), case)
    assert run.wrong == 0, notes(run)
    assert [(row["who"], row["parameters"]["update"], row["parameters"]["recall"]) for row in run.rows] == [
        ("tonari merge", "pull", 0.9),
        ("tonari merge", "pull", 0.95),
        ("tonari merge gnnd", "gnnd", 0.9),
        ("tonari merge gnnd", "gnnd", 0.95),
    ]
    assert [asked["n"] for asked in library.asked if asked["n"] < N] == [150, N - 150]  # the halves are computed once


def test_curves_end_in_time() -> None:
    run = a_run(device=Still(lambda: 30.0), repeats=1)
    run.deadline = 0.0
    done(run, a_case(work=curves.curve))
    assert all(row["note"] == "not reached" for row in run.rows)


A_PEER = """
import time

import numpy as np


class NNDescent:
    compiled = False

    def __init__(self, data, *, metric, n_neighbors, n_jobs, random_state, **settings):
        if not NNDescent.compiled:
            time.sleep(0.3)
            NNDescent.compiled = True
        assert (metric, n_jobs) == ("euclidean", 2)
        squares = ((data[:, None] - data[None]) ** 2).sum(axis=2)
        ids = np.argsort(squares, axis=1)[:, :n_neighbors].astype(np.int32)
        ids[::2, -1] = -1
        self.neighbor_graph = ids, np.take_along_axis(squares, ids, axis=1) ** 0.5
"""


def test_pynndescent_is_measured_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A stand-in, since the real one compiles for half a minute.
    (tmp_path / "pynndescent.py").write_text(A_PEER)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("pynndescent", None)
    bar = Bar("pynndescent", 1e9, home="")
    case = a_case(peers=("pynndescent",), peer_settings=({"n_neighbors": 20},), bars=(bar,))
    run = done(a_run(who=("tonari nn_descent", "pynndescent")), case)
    assert run.wrong == 0, notes(run)
    assert [row["who"] for row in run.rows] == ["tonari nn_descent", "pynndescent"]
    run = done(a_run(who=("tonari nn_descent", "pynndescent*")), case)
    ours, theirs, longer = run.rows
    assert longer["who"] == "pynndescent n_neighbors=20"
    assert longer["recall"] == 1.0
    assert ours["bar_on"] == "pynndescent"
    assert ours["passed"] is False
    # The row itself and twelve others; every second row lacks one.
    assert theirs["extras"]["recall_10"] == 1.0
    assert theirs["recall"] == pytest.approx(1 - 1 / (2 * K))
    assert theirs["extras"]["compile_seconds"] > 0.2
    assert theirs["ratio"] == pytest.approx(ours["value"])


def test_a_peer_that_is_not_there_has_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.MODULES, peers.CUVS, "no_such_module")
    run = done(a_run(who=("*cuvs*",)), a_case(peers=(peers.CUVS,)))
    assert notes(run) == "skipped: module 'no_such_module' is not installed"
    assert run.wrong == 0


def test_lists_of_cuvs_are_without_self() -> None:
    index = SimpleNamespace(graph=np.array([[1, 2, 3], [1, 0, 2], [3, 1, 0], [0, 1, 2]], np.uint32))
    np.testing.assert_array_equal(peers.cuvs_lists(index, np.array([0, 1, 3])), [[1, 2], [0, 2], [0, 1]])


# --- cases and figures -------------------------------------------------------------------------------------------


def test_cases_have_known_data_and_curves_are_rare() -> None:
    for where in ("cpu", "cuda"):
        found = [case for case in SUITE.cases if case.device == where]
        assert all(case.data in data.KINDS for case in found)
        assert {f"curve-{kind}" for kind in data.KINDS} <= {case.name for case in found}
    assert all(case.rare == case.name.startswith("curve-") for case in SUITE.cases)
    names = {case.name for case in wang2021.SUITE.cases}
    of_all = {f"{name}-{kind}" for name in ("curve", "phi", "ablation") for kind in data.KINDS}
    assert names == of_all | {"ggm-sift", "ablation-sift-100k"}


def test_rows_become_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs it")
    monkeypatch.setattr(curves, "RECALLS", (0.9, 0.99))
    monkeypatch.setattr(curves, "PROBES", ())
    monkeypatch.setattr(curves, "ROUNDS", (4,))
    path = tmp_path / "nn_descent.csv"
    done(a_run(path=path, repeats=1), a_case(name="curve-gaussian", work=curves.curve))
    (figure,) = figures.figures(rows.read(path))
    drawn = figure.write(tmp_path)
    assert drawn is not None
    assert drawn.name == "nn_descent-recall-cpu.svg"
    assert "tonari random start" in drawn.read_text()


def test_the_papers_rows_become_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs it")
    monkeypatch.setattr(wang2021.figures, "RECALLS", (0.9,))
    monkeypatch.setattr(wang2021.figures, "ROUNDS", (4,))
    monkeypatch.setattr(
        wang2021.contestants.pushing,
        "build",
        lambda points, k, **_: Library().knn_graph(points.numpy(), k, method="nn-descent", progress=False),
    )
    path = tmp_path / "nn_descent.csv"
    run = a_run(path=path, repeats=1, suite="wang2021")
    for name, (figure, work) in wang2021.FIGURES.items():
        done(run, a_case(name=f"{name}-gaussian", figure=figure, work=work, split=150))
    drawn = [str(each.write(tmp_path)) for each in wang2021.plots.figures(rows.read(path))]
    assert drawn == [str(tmp_path / f"nn_descent-wang2021-fig{figure}-cuda.svg") for figure in (4, 5, 6, 7)]
    assert "wang2021 r1" in Path(drawn[1]).read_text()
    assert "tonari gnnd, p = 16" in Path(drawn[2]).read_text()
    assert "tonari merge gnnd" in Path(drawn[3]).read_text()


def test_a_contestant_measured_later_stands_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "nn_descent.csv"
    early, late = a_run(path=path), a_run(path=path, who=("tonari exact",))
    early.shared["date"], late.shared["date"] = "2026-01-01T00:00Z", "2026-01-02T00:00Z"
    for run in (early, late):
        done(run, a_case())
    found = rows.newest(rows.read(path), "device", "case", "who")
    assert [(row["who"], row["date"][:10]) for row in found] == [
        ("tonari nn_descent", "2026-01-01"),
        ("tonari exact", "2026-01-02"),
    ]
