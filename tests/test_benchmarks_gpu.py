"""The promises of the benchmarks of the exact engine on GPUs, as far as they need no GPU.

Verdicts follow their bars, rows fit the results file, nothing wrong is timed, and every way of running a case works on
small data in host memory. Seconds are made up wherever a number decides. The proofs have tests of their own.
"""

from __future__ import annotations

import csv
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from select_checks import interpreted

torch = pytest.importorskip("torch", reason="the benchmarks on GPUs make their data with torch")

import tonari  # noqa: E402
from tonari.metrics import METRICS  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402

# The benchmarks are no part of the installed package: they are found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
main, cases, data, host, peers, rows, runs, screens, searches, warming = (
    importlib.import_module(f"benchmarks.exact_gpu{name}")
    for name in (
        "",
        "_cases",
        "_data",
        "_host",
        "_peers",
        "_rows",
        "_run",
        "_screen",
        "_search",
        "_warm",
    )
)
matsumoto = importlib.import_module("benchmarks.exact_matsumoto2015")
device = importlib.import_module("benchmarks.select_device")


class Still(device.Cpu):  # type: ignore[name-defined, misc]
    """A machine that stands still: every call takes as long as `seconds` says."""

    def __init__(self, seconds: Callable[[], float] = lambda: 0.001, title: str = "NVIDIA H100, made up") -> None:
        self.threads, self._seconds, self._title = 2, seconds, title

    def title(self) -> str:
        return self._title

    def once(self, call: Callable[[], object]) -> float:
        call()
        return self._seconds()

    def settle(self) -> None:
        pass


class Ceilings(warming.NoCeilings):  # type: ignore[name-defined, misc]
    """Made-up ceilings: products of 1 TFLOP/s, copies of 1 GB/s, a link of 1 MB/s."""

    def gemm(self) -> float:
        return 1e12

    def copy(self) -> float:
        return 1e9

    def pcie(self) -> float:
        return 1e6

    def describe(self) -> str:
        return "made-up ceilings"


def a_run(library: Any = tonari, **changes: Any) -> Any:
    """A run on a still machine, with everything in host memory."""
    still = changes.pop("device", Still())
    return runs.Run(library, still, "cpu", Ceilings(), **changes)


def a_case(**changes: Any) -> Any:
    """A small search, or with ``changes``."""
    options = {"name": "tiny", "n": 400, "m": 30, "d": 8, "k": 5, "peers": (), "bars": (cases.seconds(0.002),)}
    return cases.Case(**options | changes)


# --- the peers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["torch float32", "torch tf32", "torch float16"])
def test_torch_finds_the_neighbours_tile_by_tile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_float32_matmul_precision()
    monkeypatch.setattr(peers, "TILE_BYTES", 4 * 300 * 7)
    points = torch.randint(-50, 50, (300, 12), generator=torch.Generator().manual_seed(1)).float()
    queries = points[:23] + 0.25
    peer = peers.PEERS[name]
    found = peer.prepare(peer.rows(points))(peer.rows(queries), 3)
    expected = torch.cdist(queries, points).topk(3, largest=False).indices
    assert torch.equal(found[:, 0], torch.arange(23))
    assert (found.sort(dim=1).values == expected.sort(dim=1).values).all(dim=1).float().mean() > 0.9
    assert torch.get_float32_matmul_precision() == before


def test_self_leaves_a_peers_graph_once() -> None:
    found = torch.tensor([[0, 5, 6], [4, 1, 7], [8, 9, 3], [3, 3, 1]])
    expected = [[5, 6], [4, 7], [8, 9], [3, 1]]
    assert peers.without_self(found).tolist() == expected


def test_a_peer_that_is_not_installed_says_so() -> None:
    assert peers.Peer("x", "torch", "float32", lambda points: None).missing() is None
    assert "module 'no_such_module'" in peers.Peer("x", "no_such_module", "float32", lambda points: None).missing()


# --- rows and verdicts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bar", "value", "title", "scale", "passed"),
    [
        (rows.Bar("seconds", 2.0, most=True), 2.0, "NVIDIA H100", 1, True),
        (rows.Bar("seconds", 2.0, most=True), 2.1, "NVIDIA H100", 1, False),
        (rows.Bar("of copy", 0.7), 0.7, "NVIDIA H100", 1, True),
        (rows.Bar("of copy", 0.7), 0.69, "NVIDIA H100", 1, False),
        (rows.Bar("of copy", 0.7), 0.8, "NVIDIA H200", 1, None),
        (rows.Bar("of copy", 0.7), 0.8, "NVIDIA H100", 0.5, None),
        (rows.Bar("speed-up", 1.85, home=""), 1.9, "NVIDIA H200", 1, True),
    ],
)
def test_verdicts(bar: Any, value: float, title: str, scale: float, passed: bool | None) -> None:
    verdict = bar.verdict(value, title, scale)
    assert verdict == {"bar_on": bar.on, "bar": bar.bound, "value": value, "passed": passed}


def test_every_case_and_its_bars() -> None:
    held_to = {
        (name, bar.on): (bar.bound, bar.most, bar.home) for name, case in cases.CASES.items() for bar in case.bars
    }
    assert held_to == {
        ("small", "seconds"): (0.15e-3, True, "H100"),
        ("small", "torch"): (1.0, False, "H100"),
        ("search-d16", "pairs/s in the screen"): (3e12, False, "H100"),
        ("search-d16", "seconds"): (6e-3, True, "H100"),
        ("search-d32", "pairs/s in the screen"): (3e12, False, "H100"),
        ("search-d32", "seconds"): (6e-3, True, "H100"),
        ("search-k10", "seconds"): (7.5e-3, True, "H100"),
        ("search-k64", "seconds"): (10e-3, True, "H100"),
        ("search-k256", "seconds"): (18e-3, True, "H100"),
        ("search-k1024", "seconds"): (45e-3, True, "H100"),
        ("one-query", "of copy"): (0.7, False, "H100"),
        ("graph-gauss", "seconds"): (0.65, True, "H100"),
        ("graph-sift", "seconds"): (0.65, True, "H100"),
        ("graph-960", "seconds"): (4.5, True, "H100"),
        ("graph-10m", "seconds"): (60.0, True, "H100"),
        ("streamed", "of resident or PCIe"): (0.8, False, ""),
        ("streamed", "device bytes"): (6 * 10**9, True, ""),
        ("two-gpus", "speed-up"): (1.85, False, ""),
    }
    costs = [case.cost for case in cases.CASES.values()]
    assert costs == sorted(costs)


def test_every_case_can_be_made_small() -> None:
    for case in cases.CASES.values():
        small = case.scaled(0.001)
        assert max(small.k, small.truth_k) < small.n <= case.n
        assert 1 <= small.m <= case.m
        assert small.graph == (small.m == small.n)
        assert small.single == case.single
        assert case.data in data.KINDS
        assert set(case.peers) <= set(peers.PEERS)
        assert set(case.columns()) <= set(rows.COLUMNS)


def test_cases_are_chosen_by_pattern() -> None:
    names = [case.name for case in cases.chosen(["graph-*", "small"])]
    assert names == ["small", "graph-gauss", "graph-sift", "graph-960", "graph-10m"]
    assert len(cases.chosen(None)) == len(cases.CASES)
    with pytest.raises(SystemExit, match="no case matches 'no-such'"):
        cases.chosen(["no-such"])


# --- a case from end to end --------------------------------------------------------------------------------------


def test_a_search_is_proved_timed_judged_and_written(tmp_path: Path) -> None:
    ticks = iter([0.5, 0.001, 0.003, 0.002] + [9.0] * 4 + [7.0] * 4)
    run = a_run(path=tmp_path / "out.csv", repeats=3, device=Still(lambda: next(ticks)))
    case = a_case(peers=("torch float32", "torch tf32", "cuvs"), bars=(cases.seconds(0.002), rows.Bar("torch", 100.0)))
    searches.search(run, case)
    ours, torchs, _, cuvs, verdict = run.rows
    assert ours["who"] == "tonari"
    assert (ours["seconds_median"], ours["seconds_min"], ours["seconds_max"]) == (0.002, 0.001, 0.003)
    assert ours["spread"] == pytest.approx(1.0)
    assert ours["passed"] is True
    assert ours["proved"] == 30
    assert sum(int(part.split("=")[1]) for part in ours["rungs"].split()) == 30
    assert ours["pairs_per_s"] == pytest.approx(30 * 400 / 0.002)
    assert ours["tflops"] == pytest.approx(2 * 8 * 30 * 400 / 0.002 / 1e12)
    assert ours["fraction_gemm"] == pytest.approx(ours["tflops"])
    assert torchs["recall"] == pytest.approx(1.0)
    assert torchs["ratio"] == pytest.approx(9.0 / 0.002)
    assert cuvs["note"] == "skipped: module 'cuvs' is not installed"
    assert "seconds_median" not in cuvs
    assert (verdict["bar_on"], verdict["value"], verdict["passed"]) == ("torch", pytest.approx(3500), True)
    with (tmp_path / "out.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["who"] for row in written] == ["tonari", "torch float32", "torch tf32", "cuvs", "tonari"]
    assert written[0]["passed"] == "True"
    assert written[0]["commit"]
    for row in run.rows:
        assert row["case"] in rows.line_of(row)


def test_the_slower_side_of_a_bar_misses_it() -> None:
    run = a_run(device=Still(lambda: 0.0021))
    searches.search(run, a_case())
    assert run.rows[0]["passed"] is False
    assert "MISS" in rows.line_of(run.rows[0])


@pytest.mark.parametrize("changes", [{"graph": True, "m": 400}, {"prepared": True}, {"prepared": True, "m": 1}])
def test_graphs_indexes_and_single_queries(changes: dict[str, Any]) -> None:
    run = a_run()
    case = a_case(peers=("torch float32", "torch float16"), bars=(rows.Bar("of copy", 1e-9),), **changes)
    searches.search(run, case)
    named = {row["who"]: row for row in run.rows}
    assert named["tonari"]["proved"] == (30 if case.m == 30 else 256)
    assert ("tonari.Index" in named) == case.prepared
    assert named["torch float32"]["recall"] == pytest.approx(1.0)
    assert named["torch float16"]["dtype"] == "float16"
    assert named["torch float16"]["recall"] > 0.9
    if case.single:
        assert named["tonari"]["gbps"] == pytest.approx(2 * 400 * 8 / 0.001 / 1e9)
        assert named["tonari"]["passed"] is True
    else:
        assert "bar_on" not in named["tonari"]


def test_peers_get_a_slice_of_a_long_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "FIRST_ROWS", 100)
    asked: list[int] = []

    def prepare(points: Any) -> Any:
        search = peers.PEERS["torch float32"].prepare(points)

        def counted(queries: Any, k: int) -> Any:
            asked.append(len(queries))
            return search(queries, k)

        return counted

    monkeypatch.setitem(peers.PEERS, "slow", peers.Peer("slow", "torch", "float32", prepare))
    run = a_run(device=Still(lambda: 0.25), peer_seconds=0.6, repeats=2)
    searches.search(run, a_case(n=650, m=650, graph=True, peers=("slow",)))
    row = run.rows[-1]
    assert asked[:2] == [100, 100]
    assert set(asked[2:]) == {200}
    assert row["rows_timed"] == 200
    assert row["seconds_median"] == pytest.approx(0.25 * 650 / 200)
    assert row["recall"] == pytest.approx(1.0)
    assert "ms* " in rows.line_of(row)


def test_calls_back_to_back_share_the_time() -> None:
    calls = []
    run = a_run(device=Still(lambda: 0.5), repeats=3)
    assert run.time(lambda: calls.append(1), loops=100) == (0.005, 0.005, 0.005, 3)
    assert len(calls) == 400


def test_long_calls_are_timed_less_often() -> None:
    for seconds, timed, ran in ((0.5, 7, 8), (2.0, 3, 4), (30.0, 1, 1)):
        calls: list[int] = []
        timing = a_run(device=Still(lambda seconds=seconds: seconds)).time(lambda calls=calls: calls.append(1))
        assert timing.repeats == timed
        assert len(calls) == ran
        assert timing.median == seconds


def one_ulp(answer: Any) -> None:
    answer.distances[3, -1] = torch.nextafter(answer.distances[3, -1], torch.tensor(torch.inf))


class Wrong:
    """tonari with an answer that `change` spoils, from the call with that number on."""

    def __init__(self, change: Callable[[Any], None], after: int = 0) -> None:
        self.change, self.left = change, after

    def search(self, queries: Any, points: Any, k: int, **_: Any) -> Any:
        found = tonari.search(queries, points, k)
        if self.left <= 0:
            self.change(found)
        self.left -= 1
        return found


def test_a_wrong_answer_is_not_timed() -> None:
    calls: list[int] = []
    run = a_run(Wrong(one_ulp), device=Still(lambda: calls.append(1) or 0.1))
    main.run_cases(run, [a_case()], gpus=1)
    assert [row["note"][:26] for row in run.rows] == ["WRONG: distance 4 of row 3"]
    assert "seconds_median" not in run.rows[0]
    assert run.wrong == 1
    assert calls == []


def test_an_answer_that_changes_while_it_is_timed_is_wrong() -> None:
    run = a_run(Wrong(one_ulp, after=3))
    main.run_cases(run, [a_case()], gpus=1)
    assert [row["note"] for row in run.rows] == ["WRONG: the timed answer is another than the proved one"]


def test_faults_are_rows_and_only_ours_are_told() -> None:
    def fail(error: Exception) -> Callable[[], None]:
        def work() -> None:
            raise error

        return work

    run = a_run()
    case = a_case()
    run.guarded(case, "cuvs", fail(RuntimeError("no\nsuch thing")))
    assert run.wrong == 0
    run.guarded(case, "tonari", fail(MemoryError()))
    run.guarded(case, "tonari screen", fail(ValueError("x")))
    assert run.wrong == 2
    notes = [row["note"] for row in run.rows]
    assert notes == ["FAILED: RuntimeError: no such thing", "out of memory", "FAILED: ValueError: x"]
    with pytest.raises(runs.Poisoned):
        run.guarded(case, "cuvs", fail(RuntimeError("CUDA error: an illegal memory access was encountered")))


def test_what_was_not_run_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    def poison(run: Any, case: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    run = a_run(deadline=time.perf_counter() + 60)
    plan = [
        a_case(),
        a_case(name="long", cost=100.0),
        a_case(name="pair", gpus=2),
        a_case(name="bad", work=poison),
        a_case(name="later"),
    ]
    main.run_cases(run, plan, gpus=1)
    notes = {row["case"]: row.get("note", "") for row in run.rows}
    assert notes["tiny"] == ""
    assert notes["long"] == "not reached"
    assert notes["pair"] == "needs 2 GPUs, there are 1"
    assert notes["bad"].startswith("FAILED: RuntimeError: CUDA error")
    assert notes["later"].startswith("not reached: the device")
    assert "1 of 1 bars met; 1 wrong or failed" in capsys.readouterr().out


def test_cases_share_data_and_their_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(searches, "make", lambda *shape: made.append(shape) or data.make(*shape))
    run = a_run()
    few, many = (a_case(k=k, truth_k=9) for k in (3, 9))
    searches.search(run, few)
    proof = run.proof(few, run.kept["gaussian", 400, 30, 8])
    searches.search(run, many)
    assert run.proof(many, None) is proof
    assert len(made) == 1
    searches.search(run, a_case(d=9))
    assert len(made) == 2
    assert len(run.kept) == 2


# --- the screen over its grid ---------------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("sampled", [False, True])
def test_the_screen_is_proved_and_timed(sampled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = importlib.import_module("tonari.exact.cuda.sampling")
    sample = sampling.Sample(stride=2, rank=3, capacity=64) if sampled else None
    monkeypatch.setattr(sampling, "sample_for", lambda n, k, group: sample)
    library = SimpleNamespace(plan=lambda *shape, device: SimpleNamespace(group=16, width=17))
    run = a_run(library, repeats=1)
    case = a_case(n=300, m=5, bars=(rows.Bar("pairs/s in the screen", 1e6),), grid=((5, 8),) if sampled else ())
    screens.screen_rows(run, case, data.make("gaussian", 300, 5, 8, "cpu"))
    ways = ["tonari screen, minima of 16", *(["tonari screen, below a threshold"] if sampled else [])]
    assert [row["who"] for row in run.rows] == ways
    assert all(row["proved"] == 5 and row["dtype"] == "float16" for row in run.rows)
    assert [row.get("passed") for row in run.rows] == [None, True][-len(ways) :]
    assert run.rows[-1]["value"] == pytest.approx(5 * 300 / 0.001)


def test_a_sweep_goes_on_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def fake(run: Any, case: Any, rows_: Any) -> None:
        seen.append((tuple(rows_.points.shape), tuple(rows_.queries.shape)))
        if case.d == 3:
            raise ValueError("no")

    monkeypatch.setattr(screens, "screen_rows", fake)
    run = a_run()
    screens.sweep(run, a_case(grid=((4, 3), (5, 6))))
    assert seen == [((400, 3), (4, 3)), ((400, 6), (5, 6))]
    assert [(row["who"], row["d"]) for row in run.rows] == [("tonari screen", 3)]


# --- host memory, several GPUs, the CPU's bits -------------------------------------------------------------------


@pytest.mark.parametrize(("n", "feed", "passed"), [(25, 0.0, False), (112_500, 0.9, True)])
def test_streaming_is_held_to_what_binds(n: int, feed: float, passed: bool) -> None:
    # All on the device takes half a second, from host memory a second; the link takes one for 10^6 bytes.
    ticks = iter([0.5] * 3 + [1.0] * 3)
    run = a_run(device=Still(lambda: next(ticks)), repeats=2)
    host.streamed(run, a_case(n=n, m=20, d=2, k=2, bars=cases.CASES["streamed"].bars))
    resident, streamed, memory = run.rows
    assert (resident["who"], resident["seconds_median"]) == ("tonari", 0.5)
    assert (streamed["bar_on"], streamed["passed"]) == ("of resident or PCIe", passed)
    assert streamed["value"] == pytest.approx(max(0.5, feed))
    assert (memory["bar_on"], memory["passed"]) == ("device bytes", True)


def test_several_gpus_are_held_to_one() -> None:
    asked = []

    def knn_graph(points: Any, k: int, *, device: list[str], progress: bool) -> Any:
        asked.append(device)
        return tonari.knn_graph(points, k)

    ticks = iter([0.19] * 3 + [0.1] * 3)
    run = a_run(SimpleNamespace(knn_graph=knn_graph), device=Still(lambda: next(ticks)), repeats=2)
    case = a_case(n=300, m=300, graph=True, gpus=2, bars=(rows.Bar("speed-up", 1.85, home=""),))
    host.several(run, case)
    one, two = run.rows
    assert (one["gpus"], two["gpus"]) == (1, 2)
    assert "bar_on" not in one
    assert (two["value"], two["passed"]) == (pytest.approx(1.9), True)
    assert asked[0] == ["cuda:0"]
    assert asked[-1] == ["cuda:0", "cuda:1"]


def test_all_metrics_and_types_are_compared_with_the_cpu() -> None:
    run = a_run(repeats=1)
    case = a_case(n=300, m=20)
    host.bits(run, case)
    assert len(run.rows) == 3 + len(METRICS)
    assert run.wrong == 0
    assert {row["dtype"] for row in run.rows} == {"float32", "uint8", "float64", "float16"}
    assert all(row["proved"] == 20 for row in run.rows)

    class Differs(Wrong):
        def search(self, queries: Any, points: Any, k: int, **options: Any) -> Any:
            if options.get("device") == "cpu":
                return tonari.search(queries, points, k, metric=options["metric"])
            return super().search(queries, points, k)

    run = a_run(Differs(one_ulp))
    host.bits(run, case)
    assert run.wrong == 3 + len(METRICS)
    assert run.rows[0]["note"].startswith("WRONG: distances of row 3 are not the CPU's; 1 rows differ")


# --- TH-heap -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("samples", [3, 64, 10**6])
@pytest.mark.parametrize("kind", ["gaussian", "copies 16"])
def test_th_heap_is_a_stable_sort_of_its_distances(kind: str, k: int, samples: int) -> None:
    points, queries = data.make(kind, 500, 33, 6, "cpu")
    pipeline = matsumoto.Pipeline(tonari.select_k, points, k, samples, batch=8)
    distances, indices = pipeline.search(queries)
    parts = [pipeline.distances(queries[start : start + 8]) for start in range(0, 33, 8)]
    expected = torch.cat(parts).sort(dim=1, stable=True)
    np.testing.assert_array_equal(distances, expected.values[:, :k].numpy())
    np.testing.assert_array_equal(indices, expected.indices[:, :k].numpy())
    if samples >= k:
        assert 33 * k <= pipeline.survivors <= pipeline.sent <= 33 * 500
    if samples == 10**6:
        assert kind == "copies 16" or pipeline.survivors == 33 * k
    if samples == 64 and k == 5:
        assert pipeline.survivors < 33 * 500 / 4
    truth = brute(queries.numpy(), points.numpy(), k)
    np.testing.assert_allclose(distances, truth.distances, atol=2e-3)


def test_th_heap_is_set_beside_ours() -> None:
    run = a_run()
    matsumoto.compare(run, a_case(m=40, k=4))
    ours, small, large = run.rows
    assert ours["who"] == "tonari"
    assert [small["who"], large["who"]] == ["TH-heap, n_S = 32", "TH-heap, n_S = 128"]
    assert small["recall"] == pytest.approx(1.0)
    assert small["ratio"] == pytest.approx(1.0)
    assert float(small["note"].split()[0]) > float(large["note"].split()[0]) >= 4


# --- warming up --------------------------------------------------------------------------------------------------


def test_a_warm_up_calls_everything_and_writes_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    class Counted:
        def search(self, *arguments: Any, **options: Any) -> Any:
            asked.append("search")
            return tonari.search(*arguments, **options)

    run = warming.WarmRun(Counted(), Still(), "cpu", warming.NoCeilings(), path=tmp_path / "out.csv")
    case = a_case(peers=("torch float32", "flash float32"))
    assert [peer.name for peer in run.peers_of(case)] == ["flash float32"]
    searches.search(run, case)
    assert asked == ["search", "search"]
    assert not (tmp_path / "out.csv").exists()
    run.guarded(case, "tonari", lambda: 1 / 0)
    assert run.wrong == 1


@pytest.mark.parametrize(
    ("changes", "running", "expected"),
    [
        ({}, [], True),
        ({"gigabytes": 100.0}, [], True),
        ({}, [{}], True),
        ({}, [{}, {}], False),
        ({"gigabytes": 6.0}, [{"gigabytes": 5.0}], False),
        ({"data": "sift"}, [{"data": "sift"}], False),
        ({"data": "sift"}, [{}], True),
    ],
)
def test_a_warm_up_starts_what_there_is_room_for(
    changes: dict[str, Any], running: Sequence[dict[str, Any]], expected: bool
) -> None:
    others = [a_case(**other) for other in running]
    assert warming.fits(a_case(**changes), others, jobs=2, gigabytes=10.0) is expected


def test_a_warm_up_runs_all_and_names_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    codes = {"good": "print('done')", "bad": "raise SystemExit('broken')", "slow": "import time; time.sleep(60)"}
    plan = [a_case(name=name, gigabytes=1.0) for name in codes]
    began = time.perf_counter()
    failed = warming.warm(
        plan,
        lambda case: [sys.executable, "-S", "-c", codes[case.name]],
        jobs=3,
        gigabytes=10.0,
        deadline=time.perf_counter() + 2.0,
    )
    assert time.perf_counter() - began < 10
    assert sorted(failed) == ["bad", "slow"]
    said = capsys.readouterr().err
    assert "warm: good" in said
    assert "warm-up of bad failed: broken" in said
    assert "warm-up of slow ended: time is up" in said


# --- the command line --------------------------------------------------------------------------------------------


def test_the_cases_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[1:]] == list(cases.CASES)


@pytest.mark.parametrize("arguments", [["--scale", "2"], ["--scale", "0"], ["--repeats", "0"], ["--budget", "-1"]])
def test_numbers_out_of_range_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(arguments)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_there_is_nothing_to_measure() -> None:
    with pytest.raises(SystemExit, match="need a CUDA device"):
        main.main(["--cases", "small"])


@pytest.fixture
def made_up_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA device that is a still machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=80e9))
    monkeypatch.setattr(device, "Cuda", Still)
    monkeypatch.setattr(main, "WHERE", "cpu")
    ceilings = importlib.import_module("benchmarks.exact_gpu_ceilings")
    monkeypatch.setattr(ceilings, "Ceilings", lambda *_: Ceilings())


@pytest.mark.usefixtures("made_up_device")
def test_from_the_command_line_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.csv"
    arguments = ["--cases", "small,hard-copies*,two-gpus", "--scale", "0.002", "--csv", str(path), "--repeats", "1"]
    assert main.main(arguments) == 0
    assert "made-up ceilings" in capsys.readouterr().out
    with path.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert tuple(written[0]) == rows.COLUMNS
    ours = {row["case"]: row for row in written if row["who"] == "tonari" and row["proof"]}
    assert list(ours) == ["small", "hard-copies-16", "hard-copies"]
    assert all(row["passed"] == "" for row in written)  # cut to size: not judged
    assert [row["note"] for row in written if row["case"] == "two-gpus"] == ["needs 2 GPUs, there are 1"]


@pytest.mark.usefixtures("made_up_device")
def test_warming_from_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    started = []

    def warm(plan: Sequence[Any], command_of: Callable[[Any], list[str]], **limits: float) -> list[str]:
        started.extend(command_of(case) for case in plan)
        assert limits["gigabytes"] == pytest.approx(64.0)
        return ["small"]

    monkeypatch.setattr(warming, "warm", warm)
    assert main.main(["--warm-only", "--cases", "small,search-k10,two-gpus", "--scale", "0.5", "--no-csv"]) == 0
    expected = [sys.executable, "-m", "benchmarks.exact_gpu", "--warm-case", "small", "--scale", "0.5"]
    assert [command[4] for command in started] == ["small", "search-k10"]
    assert started[0] == expected
    assert "2 cases" in capsys.readouterr().err
    assert main.main([*expected[3:-1], "0.02"]) == 0
