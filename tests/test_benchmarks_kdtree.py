"""The promises of the benchmarks of the k-d tree, on small data in host memory.

Data sets keep what they say, nothing wrong is timed, rows fit the results file, verdicts follow their bars, every way
of running a case works, and the paper's rounds find the neighbours. Seconds are made up wherever a number decides.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="these benchmarks prove with torch")

import tonari  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402

# The benchmarks are no part of the installed package: they are found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
main = importlib.import_module("benchmarks.kdtree")
auto, cases, data, paper, plots, rounds, rows, runs, searches, streams = (
    importlib.import_module(f"benchmarks.kdtree_{name}")
    for name in (
        "auto",
        "cases",
        "data",
        "gieseke2014",
        "plots",
        "rounds",
        "rows",
        "run",
        "search",
        "stream",
    )
)
case_command, datasets, device, exact_cpu, proofs, verdicts = (
    importlib.import_module(f"benchmarks.{name}")
    for name in ("case_command", "datasets", "select_device", "exact_cpu", "exact_gpu_proof", "exact_gpu_rows")
)


class Still(device.Cpu):  # type: ignore[name-defined, misc]
    """A machine that stands still: every call takes as long as `seconds` says."""

    def __init__(self, seconds: Callable[[], float] = lambda: 0.001) -> None:
        self.threads, self._seconds = 2, seconds

    def title(self) -> str:
        return "a machine, made up"

    def once(self, call: Callable[[], object]) -> float:
        call()
        return self._seconds()

    def settle(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_cpu, "SETTLE_SECONDS", 0.0)


@pytest.fixture
def descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """TONARI_SIFT naming a file of 900 made-up rows; the rows."""
    found = np.random.default_rng(5).integers(0, 256, (900, 128), dtype=np.uint8)
    datasets.write_bvecs(tmp_path / "rows.bvecs", found)
    monkeypatch.setenv("TONARI_SIFT", str(tmp_path / "rows.bvecs"))
    datasets.principal_components.cache_clear()
    yield found
    datasets.principal_components.cache_clear()


def a_run(library: Any = tonari, **changes: Any) -> Any:
    """A run on a still machine of two threads."""
    options = {"ceilings": None, "threads": 2, "repeats": 2}
    return runs.TreeRun(library, changes.pop("device", Still()), "cpu", **options | changes)


def a_case(**changes: Any) -> Any:
    """A small search, or with ``changes``."""
    options = {"name": "tiny", "device": "cpu", "n": 500, "m": 60, "d": 3, "k": 5, "data": "uniform"}
    return cases.Case(**options | changes)


def notes(run: Any) -> str:
    return " ".join(str(row.get("note")) for row in run.rows)


# --- data sets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "d"), [("sift", 7), ("magnitudes", 10), ("magnitudes", 27), ("uniform", 3)])
def test_rows_come_twice_the_same_and_are_sound(kind: str, d: int, descriptors: np.ndarray) -> None:
    first, second = (data.make(kind, 50, 9, d, "cpu") for _ in range(2))
    assert first.points.shape == (50, d)
    assert first.queries.shape == (9, d)
    for one, other in zip(first, second, strict=True):
        assert one.dtype == torch.float32
        assert one.is_contiguous()
        assert torch.equal(one, other)
        assert torch.isfinite(one).all()
    assert data.make(kind, 50, 0, d, "cpu").queries is None


def test_principal_components_are_the_rows_rotated_and_cut(descriptors: np.ndarray) -> None:
    points, queries = datasets.pca_sift(800, 100, 27)
    whole = np.concatenate([points, queries]).astype(np.float64)
    spread = whole.var(axis=0)
    assert (spread[:5] > spread[-5:]).all()
    # A projection makes nothing longer, and this one keeps more than any 27 of 128 equal dimensions would.
    before = ((descriptors[:, None].astype(np.float64) - descriptors[None, :50]) ** 2).sum(axis=2)
    after = ((whole[:, None] - whole[None, :50]) ** 2).sum(axis=2)
    assert (after <= before * (1 + 1e-5) + 1e-2).all()
    assert after.sum() > 1.05 * 27 / 128 * before.sum()
    np.testing.assert_array_equal(datasets.pca_sift(800, 100, 4).points, points[:, :4])
    for d in (0, 28):
        with pytest.raises(ValueError, match=f"1 to 27, got d = {d}"):
            datasets.pca_sift(5, 1, d)


def test_rows_beyond_the_real_ones_are_moved_copies(descriptors: np.ndarray) -> None:
    real = datasets.principal_components()[:, :6].astype(np.float64)
    points, queries = datasets.pca_sift(2000, 5000, 6)
    n, m = datasets.real_rows(900, 2000, 5000)
    assert (n, m) == (750, 150)
    np.testing.assert_array_equal(points[:n], real[:n].astype(np.float32))
    np.testing.assert_array_equal(queries[:m], real[n:].astype(np.float32))
    for copies, source in ((points[n:], real[:n]), (queries[m:], real[n:])):
        apart = np.sqrt(((copies[:300, None] - source[None]) ** 2).sum(axis=2).min(axis=1))
        assert (apart > 0).all()
        assert apart.mean() < 1.2 * datasets.PCA_NOISE * np.sqrt(6)


@pytest.mark.parametrize(
    ("total", "n", "m", "expected"),
    [
        (900, 500, 400, (500, 400)),
        (900, 10, 5000, (10, 890)),
        (900, 5000, 10, (890, 10)),
        (900, 5000, 5000, (750, 150)),
        (900, 800, 5000, (750, 150)),
        (900, 5000, 0, (900, 0)),
    ],
)
def test_points_and_queries_share_no_real_row(total: int, n: int, m: int, expected: tuple[int, int]) -> None:
    assert datasets.real_rows(total, n, m) == expected


def test_magnitudes_have_their_columns() -> None:
    whole = datasets.magnitudes(4000, 0, 27).points.astype(np.float64)
    for model in range(3):
        bands = whole[:, 5 * model : 5 * model + 5]
        np.testing.assert_allclose(whole[:, 15 + 4 * model : 19 + 4 * model], -np.diff(bands), atol=1e-5)
    # Bands go together; a galaxy is fainter under the point-spread function; the faint have larger errors.
    assert (np.corrcoef(whole[:, :5].T) > 0.8).all()
    extent = whole[:, :5] - whole[:, 5:10]
    assert (extent.mean(axis=1) > 0.05).mean() > 0.2
    noise = np.abs(np.diff(extent, axis=1)).mean(axis=1)
    faint = whole[:, 7] > np.median(whole[:, 7])
    assert noise[faint].mean() > 1.3 * noise[~faint].mean()
    np.testing.assert_array_equal(datasets.magnitudes(100, 0, 5).points, datasets.magnitudes(100, 0, 27).points[:, :5])
    assert (datasets.magnitudes(10, 0, 5).points != datasets.magnitudes(10, 0, 5, seed=1).points).any()
    with pytest.raises(ValueError, match="got d = 28"):
        datasets.magnitudes(10, 1, 28)


def test_pixels_are_whole_numbers_without_copies_while_there_are_enough() -> None:
    pytest.importorskip("cv2", reason="pixels come from photographs that OpenCV reads")
    pytest.importorskip("skimage", reason="pixels come from the photographs inside scikit-image")
    points, queries = datasets.pixels(3000, 200)
    assert points.shape == (3000, 5)
    whole = np.concatenate([points, queries])
    assert (whole == np.rint(whole)).all()
    assert whole[:, :3].min() >= 0
    assert whole[:, :3].max() <= 255
    assert len(np.unique(whole, axis=0)) == 3200


@pytest.mark.parametrize("kind", ["sift", "magnitudes", "uniform"])
def test_a_device_draws_by_the_same_law(kind: str, descriptors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "BLOCK", 700)
    if kind == "sift":
        here = data._copies_on_device(kind, 2000, 3000, 5, "cpu")
        n, m = datasets.real_rows(900, 2000, 3000)
        host = datasets.pca_sift(2000, 3000, 5)
        np.testing.assert_array_equal(here.points[:n], host.points[:n])
        np.testing.assert_array_equal(here.queries[:m], host.queries[:m])
        here, host = torch.cat(list(here)), np.concatenate(host)
    else:
        here = torch.cat(list(data.Law(kind, 5, "cpu", 3).blocks(4000)))
        host = data.make(kind, 4000, 0, 5, "cpu").points.numpy()
    assert torch.isfinite(here).all()
    np.testing.assert_allclose(here.mean(dim=0), host.mean(axis=0), atol=0.1 * host.std())
    np.testing.assert_allclose(here.std(dim=0), host.std(axis=0), rtol=0.1)


def test_a_stream_has_fresh_chunks_of_the_sizes_asked_for() -> None:
    found = list(data.chunks("magnitudes", 1000, 300, 4, "cpu"))
    assert [len(chunk) for chunk in found] == [300, 300, 300, 100]
    assert len(torch.cat(found).unique(dim=0)) == 1000


def test_data_refuse_what_they_have_not() -> None:
    with pytest.raises(ValueError, match="got 'moons'"):
        data.make("moons", 5, 5, 3, "cpu")
    with pytest.raises(ValueError, match="5 dimensions, not 3"):
        data.make("pixels", 5, 5, 3, "cpu")


# --- proved, timed, judged ---------------------------------------------------------------------------------------


def test_a_search_is_proved_timed_and_written(tmp_path: Path) -> None:
    run = a_run(path=tmp_path / "kdtree.csv")
    case = a_case(exact_rows=20, auto=True, bars=(verdicts.Bar("seconds", 0.002, most=True, home=""),))
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    tree, exact, chosen = run.rows
    assert (tree["who"], exact["who"], chosen["who"]) == ("tonari kdtree", "tonari exact", "tonari auto")
    assert tree["passed"] is True
    assert tree["proved"] == 60
    assert tree["leaves"] >= 1
    assert tree["height"] == tonari.plan(500, 60, 3, 5, method="kdtree").height
    assert exact["rows_timed"] == 20
    assert exact["seconds_median"] == pytest.approx(0.003)
    assert exact["ratio"] == pytest.approx(3.0)
    with (tmp_path / "kdtree.csv").open() as file:
        assert [row["who"] for row in csv.DictReader(file)] == [row["who"] for row in run.rows]


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
    run.guarded(case, "tonari", lambda: case.work(run, case))
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
            if Moody.calls == 5:  # proof, first look, warm-up, two rounds, last look
                found.indices[0, 0] += 1
            return found

    library = SimpleNamespace(Index=Moody, plan=tonari.plan)
    run = a_run(library, repeats=2)
    case = a_case()
    Moody.calls = -1
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert "another than the proved one" in notes(run)
    assert all("seconds_median" not in row for row in run.rows)


@pytest.mark.parametrize("name", ["pykdtree", "ckdtree"])
def test_peers_are_measured_in_a_process_of_their_own(name: str) -> None:
    pytest.importorskip({"pykdtree": "pykdtree", "ckdtree": "scipy"}[name], reason="the peer is not installed")
    run = a_run()
    case = a_case(peers=(name,), bars=(verdicts.Bar(name, 1e9, home=""),))
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    ours, theirs = run.rows
    assert ours["bar_on"] == name
    assert ours["passed"] is False
    assert theirs["who"] == name
    assert theirs["recall"] == 1.0
    assert ours["value"] == pytest.approx(theirs["ratio"])


def test_bars_of_a_processor_are_judged_with_two_threads_at_full_size() -> None:
    bar = verdicts.Bar("seconds", 1.0, most=True, home="")
    measured = {"seconds": 0.5}
    assert a_run().verdicts((bar,), measured)[0]["passed"] is True
    assert a_run(threads=1).verdicts((bar,), measured)[0]["passed"] is None
    assert a_run(scale=0.5).verdicts((bar,), measured)[0]["passed"] is None
    assert a_run().verdicts((bar,), {}) == [{}]


def test_builds_are_proved_and_compared() -> None:
    pytest.importorskip("pykdtree", reason="the peer is not installed")
    run = a_run()
    case = a_case(peers=("pykdtree",), work=searches.build, bars=(verdicts.Bar("pykdtree", 0.0, home=""),))
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    assert [(row["who"], row["stage"]) for row in run.rows] == [("tonari kdtree", "build"), ("pykdtree", "build")]
    assert run.rows[0]["passed"] is True


def test_graphs_leave_the_point_itself_out() -> None:
    run = a_run()
    case = a_case(m=500, graph=True, exact_rows=500, work=searches.graph)
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    assert [row["stage"] for row in run.rows] == ["with build"] * 3 + ["search"]
    assert [row["who"] for row in run.rows[:3]] == ["tonari kdtree", "tonari auto", "tonari exact"]


def test_proof_rows_on_a_processor_are_few_where_points_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "PROVED_PAIRS_ON_CPU", 10_000)
    run, case = a_run(), a_case()
    assert len(run.proof(case, run.data(case)).rows) == 20


# --- streams -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [streams.stream, streams.file_stream])
def test_streams_are_proved_after_the_clock(work: Any) -> None:
    run = a_run()
    case = a_case(m=1000, d=4, chunk=300, data="magnitudes", work=work)
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    (row,) = run.rows
    assert row["stage"] == "stream"
    assert row["m"] == 1000
    assert row["proved"] in (4 * streams.KEPT_ROWS, proofs.PROVED_ROWS)


def test_a_chunk_that_is_answered_wrongly_is_found() -> None:
    points = data.make("uniform", 300, 0, 3, "cpu").points
    kept = streams.Kept()
    for chunk in kept.passing(list(data.chunks("uniform", 100, 50, 3, "cpu"))):
        kept.keep(tonari.search(chunk, points, 4))
    assert kept.prove(points, 4, "cpu") == 2 * streams.KEPT_ROWS
    kept.answers[1].distances[3, 2] += 1
    with pytest.raises(exact_cpu.WrongAnswer, match=f"kept row {streams.KEPT_ROWS + 3}"):
        kept.prove(points, 4, "cpu")
    kept.answers.pop()
    with pytest.raises(exact_cpu.WrongAnswer, match="2 chunks went in, 1 came out"):
        kept.prove(points, 4, "cpu")


# --- the paper ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "axis", "least"),
    [(paper.heights, "height", 5), (paper.orders, "m", 3), (paper.neighbours, "k", 6), (paper.sizes, "n", 1)],
)
def test_figures_have_their_points(work: Any, axis: str, least: int, tmp_path: Path) -> None:
    run = a_run(path=tmp_path / "kdtree.csv")
    figure = {"height": "2", "m": "3a", "k": "5", "n": "6"}[axis]
    case = a_case(figure=figure, data="magnitudes", d=5, work=work, truth_k=64 if axis == "k" else 0)
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    tree = [row for row in run.rows if row["who"] == "tonari kdtree"]
    assert len({row[axis] for row in tree}) >= least
    assert all(row["seconds_median"] > 0 for row in tree)
    written = plots.read(tmp_path / "kdtree.csv")
    assert len(list(paper.curves(figure, written))) == len(run.rows)
    (drawn,) = plots.draw_all(tmp_path / "kdtree.csv", tmp_path)
    assert drawn.name == f"kdtree-gieseke2014-fig{figure}-cpu.svg"
    assert "a machine, made up" in drawn.read_text()


def test_what_takes_long_is_timed_on_fewer_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "PILOT_ROWS", {"cpu": 10})
    monkeypatch.setattr(paper, "LONGEST", 4.0)
    asked: list[int] = []

    def call_of(count: int) -> Callable[[], None]:
        return lambda: asked.append(count)

    # Ten rows take two seconds: sixty would take twelve.
    assert paper.rows_for(a_run(device=Still(lambda: 2.0)), a_case(), call_of) == 20
    assert set(asked) == {10}
    assert paper.rows_for(a_run(device=Still(lambda: 0.1)), a_case(), call_of) == 60


# --- rounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "buffer", "few"), [(300, 1, 0), (40, 8, 0), (7, 1000, 0), (300, 1, 30), (40, 8, 300)]
)
@pytest.mark.parametrize(("n", "d", "height", "k"), [(700, 3, 4, 5), (700, 6, 6, 12), (50, 2, 0, 50), (64, 1, 5, 9)])
def test_rounds_find_the_neighbours(
    n: int, d: int, height: int, k: int, batch: int, buffer: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "TILE", {"cpu": 8})
    monkeypatch.setattr(rounds, "BLOCK", {"cpu": 5000})
    rng = np.random.default_rng(n + d)
    # Whole numbers: squares are exact in float32, and ties are many.
    points = rng.integers(0, 12, (n, d)).astype(np.float32)
    queries = rng.integers(-2, 14, (300, d)).astype(np.float32)
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
    assert few or counted.leaves >= 300
    assert counted.emptied <= counted.rounds


def test_buffers_are_emptied_less_often_than_rounds_are_made() -> None:
    rng = np.random.default_rng(0)
    points, queries = (torch.from_numpy(rng.random((count, 3), dtype=np.float32)) for count in (4000, 2000))
    record = rounds.record_of(a_run(), points, 5)
    eager = rounds.Rounds(record, "cpu", 5, 2000, 1)
    lazy = rounds.Rounds(record, "cpu", 5, 100, 64)
    torch.testing.assert_close(eager.search(queries)[0], lazy.search(queries)[0], rtol=0, atol=0)
    assert eager.counters.emptied >= eager.counters.rounds - 1
    assert lazy.counters.emptied < 0.5 * lazy.counters.rounds
    # A query's traversal is its own: waiting changes nothing about the leaves that it visits.
    assert lazy.counters.leaves == eager.counters.leaves


def test_rounds_stand_beside_the_tree() -> None:
    run = a_run()
    case = a_case(n=3000, m=200, work=rounds.compare)
    run.guarded(case, "tonari", lambda: case.work(run, case))
    assert run.wrong == 0, notes(run)
    names = [row["who"] for row in run.rows]
    assert names[:3] == ["tonari kdtree", "tonari kdtree, as they came", "tonari exact"]
    by_rounds = [row for row in run.rows if row["who"].startswith("rounds")]
    assert {row["who"] for row in by_rounds} == {"rounds, buffers", "rounds, sorted each"}
    assert all(row["recall"] > 0.999 and row["ratio"] > 0 for row in by_rounds), notes(run)


# --- auto --------------------------------------------------------------------------------------------------------


def test_the_grid_of_auto_has_a_verdict_in_every_cell() -> None:
    run = a_run()
    bar = verdicts.Bar(auto.ON, auto.WITHIN, most=True, home="")
    case = a_case(n=3000, m=1000, bars=(bar,), work=auto.grid)
    run.guarded(case, "tonari", lambda: case.work(run, case))
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
    case = a_case(bars=(verdicts.Bar(auto.ON, auto.WITHIN, most=True, home=""),))
    auto.cell(run, case, run.data(case))
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


# --- the command line --------------------------------------------------------------------------------------------


def test_cases_have_names_of_their_own_and_fit_the_results() -> None:
    names = [(case.device, case.name) for case in cases.CASES]
    assert len(set(names)) == len(names)
    for case in cases.CASES:
        assert set(case.columns()) <= set(rows.COLUMNS)
        small = case.scaled(1e-9)
        assert small.n >= 2 * max(case.k, case.truth_k)
        assert small.m == small.n if case.graph else small.m >= 1
        assert case.d == 5 or case.data != "pixels"


def test_patterns_choose_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert [case.name for case in cases.chosen("cpu", ["build-*"])] == ["build-d10"]
    assert {case.device for case in cases.chosen("cuda", None)} == {"cuda"}
    assert not any(case.name.startswith("auto") for case in cases.chosen("cpu", None))
    with pytest.raises(SystemExit, match="no case matches 'nothing'"):
        cases.chosen("cpu", ["nothing"])
    assert main.main(["--list", "--device", "cuda"]) == 0
    assert "seconds <= 0.015" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--scale=0", "--scale=2", "--repeats=0", "--budget=-1", "--threads=0"])
def test_numbers_out_of_range_are_refused(option: str) -> None:
    with pytest.raises(SystemExit, match=option.split("=")[0]):
        main.main(["--no-csv", option])


def test_without_time_a_case_is_noted() -> None:
    run = a_run(deadline=0.0)
    case_command.run_cases(run, [a_case()])
    assert [row["note"] for row in run.rows] == ["not reached"]


def test_one_fault_does_not_end_a_run() -> None:
    def broken(run: Any, case: Any) -> None:
        raise KeyError("gone")

    run = a_run()
    case_command.run_cases(run, [a_case(work=broken), a_case()])
    assert run.wrong == 1
    assert "KeyError" in run.rows[0]["note"]
    assert run.rows[1]["recall"] == 1.0


def test_tables_tell_bars_and_where_auto_is_off(tmp_path: Path) -> None:
    path = tmp_path / "kdtree.csv"
    run = a_run(path=path)
    timing = {"seconds_median": 0.5, "seconds_min": 0.4, "seconds_max": 0.6, "spread": 0.4}
    run.write(
        a_case(name="sift-d3"),
        [{"who": "tonari kdtree", "bar_on": "pykdtree", "bar": 2.0, "value": 1.5, "passed": False} | timing],
    )
    run.write(
        a_case(name="auto-x"), [{"who": "a", "bar_on": auto.ON, "bar": 1.2, "value": 1.4, "passed": False} | timing]
    )
    run.write(
        a_case(name="auto-x"), [{"who": "a", "bar_on": auto.ON, "bar": 1.2, "value": 1.0, "passed": True} | timing]
    )
    text = plots.tables(path)
    assert "pykdtree 1.5 of 2: missed" in text
    assert "auto is within 1.2 in 1 of 2 cells, at worst 1.40" in text


def test_only_the_newest_run_of_a_case_counts() -> None:
    old = {"device": "cpu", "case": "a", "date": "2026-01-01"}
    found = plots.newest([old, old | {"date": "2026-02-01"}, old | {"device": "cuda"}])
    assert [(row["device"], row["date"]) for row in found] == [("cpu", "2026-02-01"), ("cuda", "2026-01-01")]
