"""Exact search on the CPU: wrong answers are not timed, rows record what ran, and the fastest peer sets the bar."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.harness import contest, rows
from benchmarks.harness.case import Bar
from benchmarks.harness.contest import Timed
from benchmarks.harness.device import Timing
from benchmarks.harness.peers import cpu as peers
from benchmarks.harness.proof import WrongAnswer
from benchmarks.suites import exact_cpu
from tests.helpers.bench_checks import Still, a_case, a_run, done, notes

CASES = exact_cpu.SUITE.cases


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace waiting and the measured ceilings: no number in these tests is a result."""
    monkeypatch.setattr(contest, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(exact_cpu, "ceiling_of", lambda *_: (1e9, "made up"))


@pytest.fixture
def library() -> Any:
    """Return the library, with public functions that can be replaced one by one."""
    tonari = importlib.import_module("tonari")
    names = ("search", "knn_graph", "Index", "plan", "core")
    found = {name: getattr(tonari, name) for name in names}
    metrics = SimpleNamespace(reference=importlib.import_module("tonari.metrics.reference"))
    return SimpleNamespace(metrics=metrics, **found)


def small_case(**changes: Any) -> Any:
    """Make a case of 40 queries among 300 points without peers; ``changes`` replace its fields."""
    return a_case(**{"name": "small", "n": 300, "m": 40, "d": 8, "k": 4, "work": exact_cpu.search} | changes)


# --- no timing of a wrong answer ---------------------------------------------------------------------------------


SPOILT: dict[str, Any] = {
    "wrong index": (lambda d, i: (d, np.where(np.arange(4) == 3, (i + 1) % 300, i)), "index of row"),
    "wrong distance": (lambda d, i: (np.nextafter(d, np.float32(9)), i), "distance of row"),
    "wrong type": (lambda d, i: (d.astype(np.float64), i), "distance of row"),
    "unsorted": (lambda d, i: (d[:, ::-1], i[:, ::-1]), "out of order"),
    "twice": (lambda d, i: (d, np.where(np.arange(4) == 3, i[:, :1], i)), "holds a point twice"),
    "no such point": (lambda d, i: (d, np.where(np.arange(4) == 3, 300, i)), "names a point that does not exist"),
    "short": (lambda d, i: (d[:, :3], i[:, :3]), r"expected \(40, 4\)"),
    "a row lost": (lambda d, i: (d[:-1], i[:-1]), r"shapes \(39, 4\) and \(39, 4\), expected \(40, 4\)"),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_wrong_answer_is_not_timed(fault: str, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, message = SPOILT[fault]
    honest = library.search

    def search(*arguments: Any, **options: Any) -> Any:
        distances, indices = spoil(*honest(*arguments, **options))
        return SimpleNamespace(distances=distances, indices=indices)

    timed: list[object] = []
    monkeypatch.setattr(exact_cpu, "race", lambda *_: timed.append(1))
    library.search = search
    run, case = a_run(library), small_case()
    with pytest.raises(WrongAnswer, match=message):
        case.work(run, case)
    assert not timed
    assert not run.rows
    done(run, case)
    assert run.wrong == 1
    assert "seconds_median" not in run.rows[0]


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "l1"])
def test_agreement_allows_rounding_and_no_more(metric: str, library: Any) -> None:
    case = small_case(metric=metric)
    data = exact_cpu.load(a_run(), case)
    truth = library.metrics.reference.brute(data.queries, data.points, 4, metric)
    ours = Timed(0, truth.distances, truth.indices)
    first_rows = Timed(0, truth.distances[:30] * np.float32(1 + 2e-7), truth.indices[:30].astype(np.int64))
    assert exact_cpu.agreement(ours, first_rows, case, data) == 1.0
    off = truth.distances.copy()
    off[17, 2] *= 1.01
    with pytest.raises(WrongAnswer, match="row 17 disagrees"):
        exact_cpu.agreement(ours, Timed(0, off, truth.indices), case, data)
    missing = Timed(0, np.where(off == off[17, 2], np.nan, truth.distances), truth.indices)
    with pytest.raises(WrongAnswer, match="row 17 disagrees"):
        exact_cpu.agreement(ours, missing, case, data)


def test_agreement_counts_shared_indices(library: Any) -> None:
    case = small_case()
    data = exact_cpu.load(a_run(), case)
    truth = library.metrics.reference.brute(data.queries, data.points, 4)
    swapped = truth.indices.copy()
    swapped[:, 3] = np.setdiff1d(np.arange(300), truth.indices)[0]
    ours = Timed(0, truth.distances, truth.indices)
    assert exact_cpu.agreement(ours, Timed(0, truth.distances, swapped), case, data) == 0.75


# --- running -----------------------------------------------------------------------------------------------------


CASES_TO_RUN: dict[str, dict[str, Any]] = {
    "search": {"peers": (exact_cpu.EUCLIDEAN,), "against": (exact_cpu.EUCLIDEAN,), "metric": "cosine"},
    "all columns": {"peers": (exact_cpu.ALL_COLUMNS,), "against": ()},
    "graph of all columns": {"n": 150, "m": 150, "graph": True, "peers": (exact_cpu.ALL_COLUMNS,), "against": ()},
    "graph": {"n": 150, "m": 150, "graph": True},
    "prepared, one by one": {"prepared": True, "m": 1, "asked": 5},
    "changed rows": {"metric": "minkowski:3"},
}


@pytest.mark.parametrize("kind", CASES_TO_RUN)
def test_rows_fit_the_results_file(kind: str, library: Any, tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.csv"
    run = done(a_run(library, path=path), small_case(**CASES_TO_RUN[kind]))
    assert run.wrong == 0, notes(run)
    found = rows.read(path)
    rivals = list(CASES_TO_RUN[kind].get("peers", ()))
    assert [row["who"] for row in found] == ["tonari", *rivals]
    ours = found[0]
    assert (ours["case"], ours["isa"]) == ("small", library.plan(300, 40, 8, 4).isa)
    assert ours["m"] == CASES_TO_RUN[kind].get("m", 40)
    assert ours["proved"] > 0
    assert ours["seconds_min"] <= ours["seconds_median"] <= ours["seconds_max"]
    assert ours["bar"] is None
    assert set(ours["extras"]) == {"gflops", "ceiling_gflops", "ceiling", "fraction"}
    assert [row["metric"] for row in found] == [ours["metric"], *["euclidean"] * len(rivals)]
    assert ours["metric"] == CASES_TO_RUN[kind].get("metric", "euclidean")


def test_seconds_of_single_queries_are_those_of_one(library: Any) -> None:
    run = done(a_run(library, device=Still(lambda: 0.5)), small_case(**CASES_TO_RUN["prepared, one by one"]))
    assert run.rows[0]["seconds_median"] == pytest.approx(0.1)


def test_the_fastest_peer_carries_the_bar(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = tuple(Bar("times faster", 2.0, home="", isa=isa) for isa in ("generic", "avx2", "avx512", "amx"))
    case = small_case(peers=("faiss", "sklearn"), against=("faiss", "sklearn"), bars=bars)
    timings = {"tonari euclidean": (1.0, 1.2, 0.9), "faiss": (9.0, 9.0, 9.0), "sklearn": (1.5, 1.6, 1.4)}
    there = ["faiss", "sklearn"]

    def start(stack: Any, run: Any, *_: Any) -> list[Any]:
        _[-1]("faiss")
        _[-1]("sklearn")
        return [SimpleNamespace(name=name) for name in there]

    class Theirs:
        rows = all_rows = 40

        def __init__(self, peer: Any, case: Any, rows: int, seconds: float) -> None:
            self.name = peer.name

        def run(self) -> Timed:
            data = exact_cpu.load(a_run(), case)
            truth = library.metrics.reference.brute(data.queries, data.points, 4)
            return Timed(0, *truth)

        def sliced(self) -> dict[str, int]:
            return {}

    monkeypatch.setattr(exact_cpu, "start_peers", start)
    monkeypatch.setattr(exact_cpu, "Theirs", Theirs)
    monkeypatch.setattr(exact_cpu, "fastest_blas_core", lambda name, threads: "Haswell")
    race = {name: Timing(*seconds[:1], min(seconds), max(seconds), 3) for name, seconds in timings.items()}
    monkeypatch.setattr(exact_cpu, "race", lambda *_: dict(race))

    def measured(**changes: Any) -> list[dict[str, Any]]:
        run = done(a_run(library, **changes), case)
        assert run.wrong == 0, notes(run)
        return run.rows

    ours, slow, fast = measured()
    assert (ours["bar_on"], ours["bar"], ours["value"], ours["passed"]) == ("sklearn", 2.0, 1.5, False)
    assert (slow["ratio"], fast["ratio"], fast["recall"]) == (9.0, 1.5, 1.0)
    assert fast["extras"] == {"blas_core": "Haswell"}
    # There is no verdict at another size or number of threads, nor on "the better of the two" without the faster one.
    assert measured(scale=0.5)[0]["passed"] is None
    assert measured(device=Still(threads=4))[0]["passed"] is None
    there.remove("sklearn")
    del race["sklearn"]
    assert "bar" not in measured()[0]


def test_all_columns_are_another_plan_and_carry_their_own_bar(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = tuple(
        Bar(on, bound, home="", isa=isa)
        for on, bound in (("times faster", 3.0), (exact_cpu.ALL_COLUMNS, 4.0))
        for isa in ("generic", "avx2", "avx512", "amx")
    )
    case = small_case(peers=(exact_cpu.ALL_COLUMNS,), against=(), bars=bars)
    honest, plans = library.search, []

    def search(*arguments: Any, plan: Any = None, **options: Any) -> Any:
        plans.append(plan)
        return honest(*arguments, plan=plan, **options)

    library.search = search
    race = {"tonari euclidean": Timing(1.0, 1.0, 1.0, 3), exact_cpu.ALL_COLUMNS: Timing(5.0, 5.0, 5.0, 3)}
    monkeypatch.setattr(exact_cpu, "race", lambda *_: dict(race))
    run = done(a_run(library), case)
    assert run.wrong == 0, notes(run)
    # An answer of each was proved; only the second had a plan, that of all columns.
    assert plans[0] is None
    assert (plans[1].form_dim, plans[1].may_contract) == (8, False)
    ours, theirs = run.rows
    assert (ours["bar_on"], ours["bar"], ours["value"], ours["passed"]) == (exact_cpu.ALL_COLUMNS, 4.0, 5.0, True)
    assert (theirs["who"], theirs["ratio"]) == (exact_cpu.ALL_COLUMNS, 5.0)


def test_the_work_of_a_comparison_keeps_the_file_of_its_rows(library: Any) -> None:
    case = small_case(prepared=True, parameters={"codes": "int8"})
    run = a_run(library)
    work = exact_cpu.workload(run, case)
    data = exact_cpu.load(run, case)
    expected = library.search(data.queries, data.points, case.k).indices
    np.testing.assert_array_equal(work().indices, expected)


def test_every_workload_has_bars_and_known_peers() -> None:
    for case in CASES:
        assert {bar.isa for bar in case.bars} == {"amx", "avx512", "avx2"}
        assert set(case.against) <= set(case.peers) <= {*peers.PEERS, *exact_cpu.OURS}
        for name in set(case.peers) & set(peers.PEERS):
            assert case.metric in peers.PEERS[name].metrics
        assert case.data in exact_cpu.MAKERS


def test_data_are_those_of_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in CASES:
        small = case.scaled(1e-5)
        if case.data not in ("sift", "gist", "synthesized"):  # these need photographs
            points, queries = exact_cpu.load(a_run(), small)
            assert points.shape == (small.n, small.d)
            if case.graph:
                assert queries is None
            else:
                assert queries.shape == (32 if case.single else small.m, small.d)
