"""The k-d tree on small data in host memory: wrong answers are not timed, and every kind of case runs.

Seconds are made up wherever a number decides.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import bench_checks, plans
from tests.helpers.bench_checks import Still, a_run, done, notes

torch = pytest.importorskip("torch", reason="these benchmarks prove with torch")

import tonari  # noqa: E402
from benchmarks.harness import contest, rows  # noqa: E402
from benchmarks.harness.case import Bar  # noqa: E402
from benchmarks.harness.datasets import few_dimensions as data  # noqa: E402
from benchmarks.harness.peers import cpu as peers  # noqa: E402
from benchmarks.harness.proof import WrongAnswer  # noqa: E402
from benchmarks.harness.proof import neighbors as proofs  # noqa: E402
from benchmarks.suites.kdtree import SUITE, auto  # noqa: E402
from benchmarks.suites.kdtree import search as searches  # noqa: E402
from benchmarks.suites.kdtree import stream as streams  # noqa: E402


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "SETTLE_SECONDS", 0.0)


def a_case(**changes: Any) -> Any:
    """Make a small search; ``changes`` replace its fields."""
    options = {"n": 500, "m": 60, "d": 3, "k": 5, "data": "uniform", "prepared": True, "work": searches.search}
    return bench_checks.a_case(**options | changes)


# --- proved, timed, judged ---------------------------------------------------------------------------------------


def test_a_search_is_proved_timed_and_written(tmp_path: Path) -> None:
    run = a_run(path=tmp_path / "kdtree.csv")
    case = a_case(exact_rows=20, auto=True, bars=(Bar("seconds", 0.002, most=True, home=""),))
    done(run, case)
    assert run.wrong == 0, notes(run)
    tree, exact, chosen = run.rows
    assert (tree["who"], exact["who"], chosen["who"]) == ("tonari kdtree", "tonari exact", "tonari auto")
    assert tree["passed"] is True
    assert tree["proved"] == 60
    assert tree["extras"]["leaves"] >= 1
    assert tree["extras"]["height"] == tonari.plan(500, 60, 3, 5, method="kdtree").height
    assert exact["rows_timed"] == 20
    assert exact["seconds_median"] == pytest.approx(0.003)
    assert exact["ratio"] == pytest.approx(3.0)
    assert [row["who"] for row in rows.read(tmp_path / "kdtree.csv")] == [row["who"] for row in run.rows]


def test_a_wrong_tree_is_not_timed() -> None:
    class Off:
        def __init__(self, points: Any, *, method: str, **_: Any) -> None:
            self._index = tonari.Index(points)
            self.method = method

        def search(self, queries: Any, k: int, **_: Any) -> Any:
            found = self._index.search(queries, k)
            if self.method == "kdtree":
                found.indices[17, -1] = found.indices[17, 0]
            return found

    library = SimpleNamespace(Index=Off, plan=tonari.plan, search=tonari.search)
    run = a_run(library)
    case = a_case()
    done(run, case)
    assert run.wrong == 1
    assert len(run.rows) == 1
    assert "WRONG" in notes(run)
    assert "seconds_median" not in run.rows[0]


def test_an_answer_that_changes_while_it_is_timed_is_wrong() -> None:
    class Moody(tonari.Index):
        calls = 0

        def search(self, *given: Any, **options: Any) -> Any:
            found = super().search(*given, **options)
            Moody.calls += 1
            if Moody.calls == 5:  # proof, first check, warm-up, two rounds, last check
                found.indices[0, 0] += 1
            return found

    library = SimpleNamespace(Index=Moody, plan=tonari.plan)
    run = a_run(library, repeats=2)
    case = a_case()
    Moody.calls = -1
    done(run, case)
    assert "another than the proved one" in notes(run)
    assert all("seconds_median" not in row for row in run.rows)


@pytest.mark.parametrize("name", ["pykdtree", "ckdtree"])
def test_peers_are_measured_in_a_process_of_their_own(name: str) -> None:
    pytest.importorskip({"pykdtree": "pykdtree", "ckdtree": "scipy"}[name], reason="the peer is not installed")
    run = a_run()
    case = a_case(peers=(name,), bars=(Bar(name, 1e9, home=""),))
    done(run, case)
    assert run.wrong == 0, notes(run)
    ours, theirs = run.rows
    assert ours["bar_on"] == name
    assert ours["passed"] is False
    assert theirs["who"] == name
    assert theirs["recall"] == 1.0
    assert ours["value"] == pytest.approx(theirs["ratio"])


def test_builds_are_proved_and_compared() -> None:
    pytest.importorskip("pykdtree", reason="the peer is not installed")
    run = a_run()
    case = a_case(peers=("pykdtree",), work=searches.build, bars=(Bar("pykdtree", 0.0, home=""),))
    done(run, case)
    assert run.wrong == 0, notes(run)
    assert [(row["who"], row["stage"]) for row in run.rows] == [("tonari kdtree", "build"), ("pykdtree", "build")]
    assert run.rows[0]["passed"] is True


def test_graphs_leave_the_point_itself_out() -> None:
    run = a_run()
    case = a_case(m=500, graph=True, exact_rows=500, work=searches.graph)
    done(run, case)
    assert run.wrong == 0, notes(run)
    assert [row["stage"] for row in run.rows] == ["with build"] * 3 + ["search"]
    assert [row["who"] for row in run.rows[:3]] == ["tonari kdtree", "tonari auto", "tonari exact"]


def test_proof_rows_on_a_processor_are_few_where_points_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "PROVED_PAIRS_ON_CPU", 10_000)
    run, case = a_run(), a_case()
    assert len(searches.proof_of(run, case, searches.data_of(run, case)).rows) == 20


def test_trees_of_slabs_are_kept_or_built() -> None:
    def plan(n: int, m: int, d: int, k: int, *, method: str, point_slab: int, **_: Any) -> Any:
        return plans.tree(n, m, d, k, devices=("cpu",), free_bytes=10**10, point_slab=point_slab)

    run = a_run(SimpleNamespace(plan=plan))
    done(run, a_case(n=60, m=2, work=searches.slabs, bars=(Bar(searches.ANEW, 1.0, home=""),)))
    assert run.wrong == 0, notes(run)
    kept, built = run.rows
    assert (kept["who"], built["who"]) == ("tonari kdtree", "tonari kdtree, trees built")
    assert kept["extras"]["point_slab"] == 8
    assert kept["extras"]["kept_bytes"] > 0
    assert kept["passed"] is True


# --- streams -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [streams.stream, streams.file_stream])
def test_streams_are_proved_after_the_clock(work: Any) -> None:
    run = a_run()
    case = a_case(m=1000, d=4, chunk=300, data="magnitudes", work=work)
    done(run, case)
    assert run.wrong == 0, notes(run)
    (row,) = run.rows
    assert row["stage"] == "stream"
    assert row["m"] == 1000
    assert row["proved"] in (4 * streams.KEPT_ROWS, proofs.PROVED_ROWS)


def test_several_gpus_answer_a_stream_after_one() -> None:
    asked = []

    def index(points: Any, *, method: str, device: list[str], progress: bool) -> Any:
        asked.append(device)
        return tonari.Index(points, method=method)

    run = a_run(SimpleNamespace(Index=index, plan=tonari.plan))
    streams.several(run, a_case(m=1000, d=4, chunk=300, data="magnitudes", gpus=2))
    assert asked == [["cuda:0"], ["cuda:0", "cuda:1"]]
    assert [(row["gpus"], row["m"], row["proved"]) for row in run.rows] == [
        (gpus, 1000, 4 * streams.KEPT_ROWS) for gpus in (1, 2)
    ]


def test_a_chunk_that_is_answered_wrongly_is_found() -> None:
    points = data.make("uniform", 300, 0, 3, "cpu").points
    kept = streams.Kept()
    for chunk in kept.passing(list(data.chunks("uniform", 100, 50, 3, "cpu"))):
        kept.keep(tonari.search(chunk, points, 4))
    assert kept.prove(points, 4, "cpu") == 2 * streams.KEPT_ROWS
    kept.answers[1].distances[3, 2] += 1
    with pytest.raises(WrongAnswer, match=f"kept row {streams.KEPT_ROWS + 3}"):
        kept.prove(points, 4, "cpu")
    kept.answers.pop()
    with pytest.raises(WrongAnswer, match="2 chunks went in, 1 came out"):
        kept.prove(points, 4, "cpu")


# --- auto --------------------------------------------------------------------------------------------------------


def test_the_grid_of_auto_has_a_verdict_in_every_cell() -> None:
    run = a_run()
    bar = Bar(auto.ON, auto.WITHIN, most=True, home="")
    case = a_case(n=3000, m=1000, bars=(bar,), work=auto.grid)
    done(run, case)
    assert run.wrong == 0, notes(run)
    judged = [row for row in run.rows if row.get("bar_on")]
    assert len({(row["n"], row["m"]) for row in judged}) == len(judged) == len(auto.SHARES_N) * len(auto.SHARES_M)
    assert all(row["who"] == "tonari auto" and row["passed"] for row in judged)


def test_a_method_far_behind_is_not_timed_and_auto_that_picks_it_is_off() -> None:
    spent = {"kdtree": 0.01, "exact": 1.0, "auto": 1.1}
    asked: list[str] = []

    class Slow(Still):
        def once(self, call: Callable[[], object]) -> float:
            call()
            return spent[asked[-1]]

    def search(queries: Any, points: Any, k: int, *, method: str, **_: Any) -> Any:
        asked.append(method)
        return tonari.search(queries, points, k)

    run = a_run(SimpleNamespace(search=search), device=Slow())
    case = a_case(bars=(Bar(auto.ON, auto.WITHIN, most=True, home=""),))
    auto.cell(run, case, searches.data_of(run, case))
    rows_of = {row["who"]: row for row in run.rows}
    assert rows_of["tonari exact"]["note"] == "about 1 s, not timed"
    assert rows_of["tonari auto"]["value"] == pytest.approx(110)
    assert rows_of["tonari auto"]["passed"] is False


def test_what_all_queries_would_take_counts_the_build_once() -> None:
    count = [0]

    class Linear(Still):
        def once(self, call: Callable[[], object]) -> float:
            call()
            return 5.0 + 0.01 * count[0]

    def call_of(rows: int) -> Callable[[], None]:
        return lambda: count.__setitem__(0, rows)

    assert auto.would_take(a_run(device=Linear()), 100_000, call_of) == pytest.approx(1005.0)
    assert auto.would_take(a_run(device=Linear()), 10, call_of) == pytest.approx(5.1)


# --- the cases ---------------------------------------------------------------------------------------------------


def test_cases_have_data_and_peers() -> None:
    for case in SUITE.cases:
        assert case.data in data.KINDS
        assert set(case.peers) <= set(peers.PEERS)
        assert case.d == 5 or case.data != "pixels"
        assert case.rare == case.name.startswith("auto-")
    held_to = {
        (case.device, case.name, bar.on): (bar.bound, bar.most, bar.home)
        for case in SUITE.cases
        for bar in case.bars
        if not case.rare
    }
    assert held_to == {
        **{
            ("cpu", name, peer): (bound, False, "")
            for name, ours in {"sift-d3": 2, "sift-d5": 2, "sift-d10": 3, "sift-d15": 5, "magnitudes-d10": 3}.items()
            for peer, bound in {"pykdtree": ours, "ckdtree": 3}.items()
        },
        **{
            ("cpu", name, peer): (bound, False, "")
            for name in ("pixels-d5", "uniform-d3")
            for peer, bound in {"pykdtree": 2, "ckdtree": 3}.items()
        },
        **{("cpu", f"uniform-d3-k{k}", peer): (2, False, "") for k in (257, 1000) for peer in ("pykdtree", "ckdtree")},
        ("cpu", "build-d10", "pykdtree"): (1, False, ""),
        ("cuda", "sift-d5", "seconds"): (0.5, True, "H100"),
        ("cuda", "sift-d10", "seconds"): (1.0, True, "H100"),
        ("cuda", "sift-d15", "seconds"): (2.5, True, "H100"),
        ("cuda", "sift-d27", "exact over auto"): (1 / 1.2, False, "H100"),
        ("cuda", "magnitudes-d10", "seconds"): (1.0, True, "H100"),
        ("cuda", "pixels-d5", "seconds"): (0.5, True, "H100"),
        ("cuda", "graph-d3", "seconds"): (15e-3, True, "H100"),
        ("cuda", "build-d10", "seconds"): (20e-3, True, "H100"),
        ("cuda", "stream", "on the device"): (1e7, False, "H100"),
        ("cuda", "stream", "in host memory"): (6e7, False, "H100"),
        ("cuda", "stream-file", "file to file"): (1e7, False, "H100"),
        ("cuda", "slabs", "tonari kdtree, trees built"): (1.2, False, "H100"),
    }
    bounds = {case.data: (case.bars[0].bound, case.bars[0].most) for case in SUITE.cases if case.rare}
    assert bounds == {
        "sift": (1.2, True),
        "uniform": (1.2, True),
        "magnitudes": (1.15, True),
        "pixels": (1.15, True),
    }


def test_time_against_d_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="what draws")
    (figure,) = SUITE.figures(list(rows.read(SUITE.path)))
    assert figure.write(tmp_path) == tmp_path / "time-against-d.svg"
    assert list(figure.panels[0].curves) == ["cKDTree", "pykdtree", "tonari, brute force", "tonari, k-d tree"]
    assert all(len(places) == 4 for places in figure.panels[0].curves.values())
