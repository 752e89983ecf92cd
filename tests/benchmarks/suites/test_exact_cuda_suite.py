"""Exact search on CUDA: the parts that need no GPU.

Wrong answers are not timed, and every kind of case runs on small data in host memory. Seconds are made up wherever a
number decides.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still
from tests.helpers.devices import interpreted
from tests.helpers.gpu_checks import DEVICE

torch = pytest.importorskip("torch", reason="the benchmarks on GPUs make their data with torch")

import tonari  # noqa: E402
from benchmarks import __main__ as main  # noqa: E402
from benchmarks.harness import command, rows  # noqa: E402
from benchmarks.harness.case import Bar  # noqa: E402
from benchmarks.harness.datasets import hard as data  # noqa: E402
from benchmarks.harness.peers import cuda as peers  # noqa: E402
from benchmarks.harness.proof import WrongAnswer  # noqa: E402
from benchmarks.harness.run import run_cases  # noqa: E402
from benchmarks.suites.exact_cuda import SUITE, bounds, cases, codes, cold, contracted, contracted_host, host, warm  # noqa: E402
from benchmarks.suites.exact_cuda import screen as screens  # noqa: E402
from benchmarks.suites.exact_cuda import search as searches  # noqa: E402
from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, POINT_TILE, group_count, members  # noqa: E402
from tonari.metrics import METRICS  # noqa: E402

H100 = {"kind": "cuda", "title": "NVIDIA H100, made up"}


class Ceilings(warm.NoCeilings):
    """Made-up ceilings: products of 1 TFLOP/s, copies of 1 GB/s, a link of 1 MB/s."""

    def gemm(self) -> float:
        return 1e12

    def copy(self) -> float:
        return 1e9

    def pcie(self) -> float:
        return 1e6


def on_h100(seconds: Callable[[], float] = lambda: 0.001) -> Still:
    return Still(seconds, **H100)


def a_run(library: Any = tonari, **changes: Any) -> Any:
    """Make a run on a device with fixed times, with everything in host memory."""
    defaults: dict[str, Any] = {"device": on_h100(), "ceilings": Ceilings(), "repeats": 7, "gpus": 1}
    return bench_checks.a_run(library, **defaults | changes)


def a_case(**changes: Any) -> Any:
    """Make a small search; ``changes`` replace its fields."""
    options: dict[str, Any] = {"n": 400, "m": 30, "d": 8, "k": 5, "bars": (cases.seconds(0.002),)}
    return bench_checks.a_case(**options | {"device": "cuda", "work": searches.search} | changes)


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


def test_a_peer_that_is_not_installed_says_so() -> None:
    assert peers.Peer("x", "torch", "float32", lambda points: None).missing() is None
    assert "module 'no_such_module'" in peers.Peer("x", "no_such_module", "float32", lambda points: None).missing()


# --- bars --------------------------------------------------------------------------------------------------------


def test_every_case_and_its_bars() -> None:
    held_to = {(case.name, bar.on): (bar.bound, bar.most, bar.home) for case in SUITE.cases for bar in case.bars}
    assert held_to == {
        ("small", "seconds"): (0.15e-3, True, "H100"),
        ("small", "torch"): (1.0, False, "H100"),
        ("search-d16", "pairs/s in the screen"): (3e12, False, "H100"),
        ("search-d16", "seconds"): (6e-3, True, "H100"),
        ("search-d32", "pairs/s in the screen"): (3e12, False, "H100"),
        ("search-d32", "seconds"): (6e-3, True, "H100"),
        ("search-k10", "seconds"): (7.5e-3, True, "H100"),
        ("search-k10-once-gaussian", "seconds"): (7.5e-3, True, "H100"),
        ("search-k10-once-half", "seconds"): (7.5e-3, True, "H100"),
        ("search-k10-once-noise", "seconds"): (7.5e-3, True, "H100"),
        ("search-k10-half", "seconds"): (6.2e-3, True, "H100"),
        ("search-k10-noise", "seconds"): (6.2e-3, True, "H100"),
        ("search-k64", "seconds"): (10e-3, True, "H100"),
        ("search-k256", "seconds"): (18e-3, True, "H100"),
        ("search-k1024", "seconds"): (45e-3, True, "H100"),
        ("cold-k10", "seconds"): (3.0, True, "H200"),
        ("cold-half", "seconds"): (4.0, True, "H100"),
        ("cold-graph", "seconds"): (4.0, True, "H100"),
        ("cold-graph-bytes", "seconds"): (4.0, True, "H100"),
        ("cold-descent", "seconds"): (4.0, True, "H100"),
        ("cold-index", "seconds"): (4.0, True, "H100"),
        ("cold-tree", "seconds"): (4.0, True, "H100"),
        ("cold-k256", "seconds"): (3.0, True, "H200"),
        ("cold-tight", "seconds"): (3.0, True, "H200"),
        ("one-query", "of copy"): (0.7, False, "H100"),
        ("graph-gauss", "seconds"): (0.65, True, "H100"),
        ("graph-sift", "seconds"): (0.65, True, "H100"),
        ("graph-960", "seconds"): (4.5, True, "H100"),
        ("graph-10m", "seconds"): (60.0, True, "H100"),
        ("streamed", "of resident or PCIe"): (0.8, False, ""),
        ("streamed", "device bytes"): (6 * 10**9, True, ""),
        ("two-gpus", "speed-up"): (1.85, False, ""),
        ("search-two-gpus", "speed-up"): (1.7, False, ""),
        ("host-routes", "over the better route"): (1.15, True, ""),
        ("contracted-host-6m", contracted_host.OF_RESIDENT): (2.0, True, ""),
        ("contracted-host", contracted_host.OF_RESIDENT): (2.0, True, ""),
        ("codes-10m", codes.RATE): (250_000.0, False, "H100"),
        ("codes-100m", codes.RATE): (30_000.0, False, "H100"),
        ("codes-500m", codes.RATE): (6000.0, False, "H100"),
        ("codes-500m-two", codes.RATE): (10_800.0, False, "H100"),
        ("codes-1000m-two", codes.RATE): (2000.0, False, "H100"),
        **{(case.name, codes.DEVICE_BYTES): (72e9, True, "") for case in SUITE.cases if case.work is codes.codes},
        ("contracted-topics", "seconds"): (14e-3, True, "H200"),
        ("contracted-gaussian", "of full"): (1.03, True, ""),
        ("contracted-graph-gist", "seconds"): (1.5, True, "H200"),
        ("contracted-graph-patches", "seconds"): (1.0, True, "H200"),
        ("contracted-graph-slow-topics", "seconds"): (2.2, True, "H200"),
        ("contracted-graph-topics", "seconds"): (1.4, True, "H200"),
    }
    costs = [case.cost for case in SUITE.cases]
    assert costs == sorted(costs)
    for case in SUITE.cases:
        assert case.data in data.KINDS or case.work is codes.codes
        assert set(case.peers) <= set(peers.PEERS)


@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize("changes", [{"prepared": True, "metric": "cosine"}, {"graph": True, "m": 40, "n": 40}])
def test_all_numbers_of_coordinates_have_one_answer(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.cuda.memory.free_memory", lambda devices: 8 * 10**9)
    monkeypatch.setattr(contracted, "LONGEST", 0.0)
    run = a_run(repeats=1, where=DEVICE)
    case = a_case(n=150, m=3, d=66, data="topics", bars=(Bar("of full", 1e9, most=True),), work=None)
    contracted.contracted(run, dataclasses.replace(case, **changes))
    named, living = ([], []) if "graph" in changes else (["tonari, form_dim 32"], [contracted.INDEX])
    rows = [row["who"] for row in run.rows if "prepare" not in row["who"]]
    assert rows == ["tonari, form_dim full", *named, "tonari, chosen", *living]
    assert run.wrong == 0, [row.get("note") for row in run.rows]
    assert [row.get("passed") for row in run.rows][-1] is not None
    with pytest.raises(WrongAnswer, match="indices of 1 rows are not those of a search in all dimensions"):
        contracted.check((torch.zeros(2, 1), torch.eye(2)[:, :1]), (torch.zeros(2, 1), torch.zeros(2, 1)))


@pytest.mark.usefixtures("cpu_for_cuda")
def test_points_in_host_memory_are_held_to_their_contracted_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.cuda.memory.free_memory", lambda devices: 8 * 10**9)
    run = a_run(repeats=1, where=DEVICE)
    bars = (Bar(contracted_host.OF_RESIDENT, 2.0, most=True, home=""),)
    case = a_case(n=150, m=3, d=24, data="few directions", bars=bars, work=contracted_host.contracted_host)
    run_cases(run, [case])
    assert [row["who"] for row in run.rows] == ["tonari, prepare", "tonari", "tonari, resident search of f"]
    assert run.wrong == 0, [row.get("note") for row in run.rows]
    assert run.rows[1]["value"] == 1.0  # on a machine with fixed times
    assert run.rows[1]["proved"] == 3
    assert "in 12 dimensions" in run.rows[1]["extras"]["levels"]
    run.rows.clear()
    run_cases(run, [dataclasses.replace(case, n=10**12)])
    assert run.rows[0]["note"].startswith("needs 48000000000000 bytes of host memory")


@pytest.mark.parametrize("fault", [None, "index", "distance", "peer"])
def test_codes_are_compared_with_whole_numbers(fault: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    real = rng.integers(0, 256, (300, 128)).astype(np.uint8)
    real[200:] = real[:100]  # copies, so that some distances are equal
    monkeypatch.setattr("benchmarks.harness.datasets.photographs.every_sift", lambda: real)
    monkeypatch.setattr("benchmarks.harness.datasets.synthesized.BLOCK", 64)
    monkeypatch.setattr(codes, "STEP", 100)
    monkeypatch.setattr(codes, "BATCH", 20)
    monkeypatch.setattr(codes, "in_use", lambda devices: 5)

    def search(queries: Any, k: int, *, progress: bool) -> Any:
        found = tonari.search(queries, asked["points"], k, progress=progress)
        if fault == "index":
            found.indices[7, -1] = np.setdiff1d(np.arange(len(asked["points"])), found.indices[7])[0]
        if fault == "distance":
            found.distances[7, -1] += 1
        return found

    def prepare(points: Any) -> Any:
        def search(queries: Any, k: int) -> Any:
            squares, indices = tonari.search(queries, points, k, metric="sqeuclidean")
            return squares + np.float32(fault == "peer"), indices

        return search

    monkeypatch.setitem(codes.HOST_PEERS, peers.CERTEX, peers.Peer(peers.CERTEX, "torch", "uint8", prepare))
    asked: dict[str, Any] = {}

    def index(points: Any, **options: Any) -> Any:
        asked.update(options, points=points)
        return SimpleNamespace(search=search)

    run = a_run(SimpleNamespace(Index=index), repeats=1, gpus=2)
    bars = (Bar(codes.RATE, 1000.0, home=""),)
    rivals = (peers.CERTEX, peers.CERTEX_INT8)
    run_cases(run, [a_case(n=450, m=50, d=96, bars=bars, gpus=2, work=codes.codes, peers=rivals)])
    assert asked["points"].shape == (450, 96)
    assert (asked["device"], asked["codes"]) == (["cuda:0", "cuda:1"], "int8")
    if fault in ("index", "distance"):
        assert "row 7 differs from sums of whole numbers" in run.rows[-1]["note"]
        return
    assert run.wrong == 0, [row.get("note") for row in run.rows]
    who = ["tonari, prepare", "tonari", "tonari, one call", "certex, prepare", "certex", "certex, one call"]
    assert [row["who"] for row in run.rows] == [*who, "certex int8"]
    assert run.rows[4]["recall"] == (fault is None)
    assert run.rows[6]["note"] == "skipped: module 'certex' is not installed"
    assert (run.rows[1]["proved"], run.rows[1]["m"], run.rows[1]["value"]) == (50, 20, 20_000.0)
    assert run.rows[2]["extras"] == {codes.RATE_AT_ONCE: 50_000.0}


# --- a case from end to end --------------------------------------------------------------------------------------


def test_a_search_is_proved_timed_judged_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only the precision levels of a screen are reported.
    monkeypatch.setattr("tonari.exact.planning.planner.direct_seconds", lambda *_: 1e9)
    monkeypatch.setattr("tonari.methods.tuning.LEAST_POINTS", 1000)
    ticks = iter([0.5, 0.001, 0.003, 0.002] + [9.0] * 4 + [7.0] * 4)
    run = a_run(path=tmp_path / "out.csv", repeats=3, device=on_h100(lambda: next(ticks)))
    case = a_case(peers=("torch float32", "torch tf32", "cuvs"), bars=(cases.seconds(0.002), Bar("torch", 100.0)))
    searches.search(run, case)
    ours, torchs, _, cuvs, verdict = run.rows
    assert ours["who"] == "tonari"
    assert (ours["seconds_median"], ours["seconds_min"], ours["seconds_max"]) == (0.002, 0.001, 0.003)
    assert rows.spread(ours) == pytest.approx(1.0)
    assert ours["passed"] is True
    assert ours["proved"] == 30
    assert sum(int(part.split("=")[1]) for part in ours["extras"]["levels"].split()) == 30
    assert ours["extras"]["pairs_per_s"] == pytest.approx(30 * 400 / 0.002)
    assert ours["extras"]["tflops"] == pytest.approx(2 * 8 * 30 * 400 / 0.002 / 1e12)
    assert ours["extras"]["fraction_gemm"] == pytest.approx(ours["extras"]["tflops"])
    assert torchs["recall"] == pytest.approx(1.0)
    assert torchs["ratio"] == pytest.approx(9.0 / 0.002)
    assert cuvs["note"] == "skipped: module 'cuvs' is not installed"
    assert "seconds_median" not in cuvs
    assert (verdict["bar_on"], verdict["value"], verdict["passed"]) == ("torch", pytest.approx(3500), True)
    written = rows.read(tmp_path / "out.csv")
    assert [row["who"] for row in written] == ["tonari", "torch float32", "torch tf32", "cuvs", "tonari"]
    assert written[0]["passed"] is True
    assert written[0]["commit"]
    for row in run.rows:
        assert row["case"] in rows.line(row)


def test_the_slower_side_of_a_bar_misses_it() -> None:
    run = a_run(device=on_h100(lambda: 0.0021))
    searches.search(run, a_case())
    assert run.rows[0]["passed"] is False
    assert "MISSED" in rows.line(run.rows[0])


@pytest.mark.parametrize(
    "changes", [{"graph": True, "m": 400}, {"prepared": True}, {"prepared": True, "m": 1, "asked": 256}]
)
def test_graphs_indexes_and_single_queries(changes: dict[str, Any]) -> None:
    run = a_run()
    case = a_case(peers=("torch float32", "torch float16"), bars=(Bar("of copy", 1e-9),), **changes)
    searches.search(run, case)
    named = {row["who"]: row for row in run.rows}
    assert named["tonari"]["proved"] == (30 if case.m == 30 else 256)
    assert ("tonari.Index" in named) == case.prepared
    assert named["torch float32"]["recall"] == pytest.approx(1.0)
    assert named["torch float16"]["dtype"] == "float16"
    assert named["torch float16"]["recall"] > 0.9
    if case.single:
        assert named["tonari"]["extras"]["gbps"] == pytest.approx(2 * 400 * 8 / 0.001 / 1e9)
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
    run = a_run(device=on_h100(lambda: 0.25), peer_seconds=0.6, repeats=2)
    searches.search(run, a_case(n=650, m=650, graph=True, peers=("slow",)))
    row = run.rows[-1]
    assert asked[:2] == [100, 100]
    assert set(asked[2:]) == {200}
    assert row["rows_timed"] == 200
    assert row["seconds_median"] == pytest.approx(0.25 * 650 / 200)
    assert row["recall"] == pytest.approx(1.0)
    assert "* ±" in rows.line(row)


def one_ulp(answer: Any) -> None:
    answer.distances[3, -1] = torch.nextafter(answer.distances[3, -1], torch.tensor(torch.inf))


class Wrong:
    """tonari, except that `change` spoils the answers from the call with that number on."""

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
    run = a_run(Wrong(one_ulp), device=on_h100(lambda: calls.append(1) or 0.1))
    run_cases(run, [a_case()])
    assert [row["note"][:26] for row in run.rows] == ["WRONG: distance 4 of row 3"]
    assert "seconds_median" not in run.rows[0]
    assert run.wrong == 1
    assert calls == []


def test_an_answer_that_changes_while_it_is_timed_is_wrong() -> None:
    run = a_run(Wrong(one_ulp, after=3))
    run_cases(run, [a_case()])
    assert [row["note"] for row in run.rows] == ["WRONG: the timed answer is another than the proved one"]


def test_cases_share_data_and_their_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(searches, "make", lambda *shape: made.append(shape) or data.make(*shape))
    run = a_run()
    few, many = (a_case(k=k, truth_k=9) for k in (3, 9))
    searches.search(run, few)
    proof = searches.proof_of(run, few, None)
    searches.search(run, many)
    assert searches.proof_of(run, many, None) is proof
    assert len(made) == 1
    searches.search(run, a_case(d=9))
    assert len(made) == 2
    assert len(run.kept) == 2


# --- the screen over its grid ---------------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("sampled", [False, True])
def test_the_screen_is_proved_and_timed(sampled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = importlib.import_module("tonari.exact.cuda.screens.sampling")
    sample = sampling.Sample(stride=2, rank=3, capacity=64) if sampled else None
    monkeypatch.setattr(sampling, "sample_for", lambda n, k, group: sample)
    library = SimpleNamespace(plan=lambda *shape, device: SimpleNamespace(group=16, width=17))
    run = a_run(library, repeats=1)
    case = a_case(n=300, m=5, bars=(Bar("pairs/s in the screen", 1e6),), grid=((5, 8),) if sampled else ())
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
    # On the device everything takes half a second, from host memory a second; the link transfers 10^6 bytes in one
    # second.
    ticks = iter([0.5] * 3 + [1.0] * 3)
    run = a_run(device=on_h100(lambda: next(ticks)), repeats=2)
    host.streamed(
        run, a_case(n=n, m=20, d=2, k=2, bars=next(case.bars for case in SUITE.cases if case.name == "streamed"))
    )
    resident, streamed, memory = run.rows
    assert (resident["who"], resident["seconds_median"]) == ("tonari", 0.5)
    assert (streamed["bar_on"], streamed["passed"]) == ("of resident or PCIe", passed)
    assert streamed["value"] == pytest.approx(max(0.5, feed))
    assert (memory["bar_on"], memory["passed"]) == ("device bytes", True)


def test_the_plans_route_is_held_to_the_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SHARES", (1, 20))
    asked = []

    def plan(n: int, m: int, d: int, k: int, *, route: str = "streamed", **given: Any) -> Any:
        assert (n, d, k, given["memory"]) == (300, 8, 5, host.TIGHT)
        asked.append((m, route))
        return SimpleNamespace(route=route)

    def search(queries: Any, points: Any, k: int, *, plan: Any, device: str, progress: bool) -> Any:
        assert device == "cpu"
        clock["now"] = {"streamed": 0.3, "host_refine": 0.2}[plan.route]
        return tonari.search(queries, points, k)

    clock = {"now": 0.0}
    (bar,) = next(case.bars for case in SUITE.cases if case.name == "host-routes")
    run = a_run(SimpleNamespace(plan=plan, search=search), device=on_h100(lambda: clock["now"]), repeats=2)
    host.routes(run, a_case(n=300, m=20, bars=(bar,)))
    assert asked == [(m, route) for m in (20, 1) for route in ("streamed", "host_refine", "streamed")]
    assert [row["m"] for row in run.rows] == [20] * 3 + [1] * 3
    assert [row["who"] for row in run.rows[:3]] == ["tonari streamed", "tonari host_refine", "tonari auto"]
    assert [row.get("passed") for row in run.rows[:3]] == [None, None, False]
    assert run.rows[2]["value"] == pytest.approx(1.5)

    run = a_run(SimpleNamespace(plan=plan, search=Wrong(one_ulp).search), repeats=1)
    with pytest.raises(WrongAnswer):
        host.routes(run, a_case(n=300, m=20, bars=(bar,)))


def test_several_gpus_are_held_to_one() -> None:
    asked = []

    def knn_graph(points: Any, k: int, *, device: list[str], progress: bool) -> Any:
        asked.append(device)
        return tonari.knn_graph(points, k)

    ticks = iter([0.19] * 3 + [0.1] * 3)
    run = a_run(SimpleNamespace(knn_graph=knn_graph), device=on_h100(lambda: next(ticks)), repeats=2)
    case = a_case(n=300, m=300, graph=True, gpus=2, bars=(Bar("speed-up", 1.85, home=""),))
    host.several(run, case)
    one, two = run.rows
    assert (one["gpus"], two["gpus"]) == (1, 2)
    assert "bar_on" not in one
    assert (two["value"], two["passed"]) == (pytest.approx(1.9), True)
    assert asked[0] == ["cuda:0"]
    assert asked[-1] == ["cuda:0", "cuda:1"]

    def search(queries: Any, points: Any, k: int, *, device: list[str], progress: bool) -> Any:
        asked.append(device)
        return tonari.search(queries, points, k)

    asked.clear()
    ticks = iter([0.19] * 3 + [0.1] * 3)
    run = a_run(SimpleNamespace(search=search), device=on_h100(lambda: next(ticks)), repeats=2)
    host.several(run, case.resized(graph=False, m=20))
    assert [row["gpus"] for row in run.rows] == [1, 2]
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


# --- the screen --------------------------------------------------------------------------------------------------


def a_screen(group: int = 16) -> tuple[Any, Any]:
    """Minima of a screen of float16 rows, in float64, with errors as measured; and what their check asks for."""
    points, queries = data.make("gaussian", 300, 9, 12, "cpu")
    form = SimpleNamespace(centre=points.double().mean(dim=0), scale=torch.tensor([16.0], dtype=torch.float64))
    x, q = ((rows.double() - form.centre) * form.scale for rows in (points, queries))
    low_x, low_q = x.half().double(), q.half().double()
    tiles = -(-300 // POINT_TILE)

    def largest(values: Any) -> Any:
        padded = torch.zeros(tiles * POINT_TILE, dtype=torch.float64)
        padded[:300] = values
        return padded.view(tiles, POINT_TILE).amax(dim=1)

    packed_points = SimpleNamespace(e1=largest(2 * (x - low_x).norm(dim=1)), e2=largest(2 * low_x.norm(dim=1)))
    packed_queries = SimpleNamespace(norm=q.norm(dim=1), rest=(q - low_q).norm(dim=1))
    scores = torch.full((9, tiles * POINT_TILE), torch.inf, dtype=torch.float64)
    scores[:, :300] = (x * x).sum(dim=1) - 2 * low_q @ low_x.T
    bound = packed_queries.norm[:, None] * packed_points.e1 + packed_queries.rest[:, None] * packed_points.e2
    columns = torch.from_numpy(members(np.arange(group_count(300, group)), group))
    minima = scores[:, columns].amin(dim=2) - bound.repeat_interleave(POINT_TILE // group, dim=1)
    rows = data.DeviceData(points, queries)
    return minima.float(), bounds.Packed(rows, packed_queries, packed_points, form, group)


def check_minima(minima: Any, packed: Any) -> int:
    rows = bounds.proved_rows(len(minima))
    checked: int = bounds.check_bounds(minima, torch.ones_like(minima, dtype=torch.bool), rows, packed)
    return checked


@pytest.mark.parametrize("group", [8, 16, 32])
def test_a_right_screen_passes_in_blocks_too(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_minima(*a_screen(group)) == 9
    monkeypatch.setattr(bounds, "BLOCK", 12 * POINT_TILE)
    assert check_minima(*a_screen(group)) == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda minimum: minimum + 12, "group 5 for query 4 is above a member's score"),
        (lambda minimum: minimum - 40, "group 5 for query 4 is below what the bound allows"),
        (lambda minimum: torch.nan, "group 5 for query 4 is above a member's score"),
    ],
)
def test_a_wrong_minimum_does_not_pass(change: Callable[[Any], Any], message: str) -> None:
    minima, packed = a_screen()
    minima[4, 5] = change(minima[4, 5])
    with pytest.raises(WrongAnswer, match=message):
        check_minima(minima, packed)


def some_lists() -> tuple[Any, Any, Any]:
    """The six lowest groups of each row, in no order, with holes; thresholds that let just these pass; the rest."""
    minima, packed = a_screen(LISTED)
    parts, _ = a_screen(LEAST_GROUP)
    lowest = minima.topk(6, dim=1, largest=False)
    thresholds = lowest.values[:, -1].clone()
    numbers = (lowest.indices // 4 * 16 + lowest.indices % 4)[:, :, None] + 4 * torch.arange(4)
    below = torch.stack([parts[row][numbers[row]] <= thresholds[row] for row in range(len(minima))])
    masks = (below.int() << torch.arange(4)).sum(dim=2)
    places = torch.randperm(9, generator=torch.Generator().manual_seed(0))[:6]
    values = torch.full((len(minima), 9), torch.inf)
    entries = torch.full((len(minima), 9), -7, dtype=torch.int32)
    values[:, places], entries[:, places] = lowest.values, (lowest.indices * 16 + masks).int()
    return SimpleNamespace(values=values, entries=entries, counts=torch.full((9, 3), 3), room=3), thresholds, packed


def test_right_lists_pass() -> None:
    lists, thresholds, packed = some_lists()
    rows = bounds.proved_rows(9)
    assert len(rows) == 9
    assert bounds.check_lists(lists, thresholds, rows, packed) == 9
    lists.counts[2, 1] = 4  # overflowed: nothing is proved
    assert bounds.check_lists(lists, thresholds, rows, packed) == 8


def drop(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] = torch.inf


def unmark(lists: Any, lowest: int) -> None:
    lists.entries[4, lowest] &= ~15


def twice(lists: Any, lowest: int) -> None:
    others = lists.values[4].isfinite().nonzero()[:, 0]
    lists.entries[4, lowest] = lists.entries[4, others[others != lowest][0]]


def raised(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] += 1e4


def too_high(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] = lists.values[4][lists.values[4].isfinite()].max()


def loose(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] -= 1e4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop, "for query 4 is above a member's score"),
        (unmark, "for query 4 is above a member's score"),
        (twice, "the list of query 4 names a group twice"),
        (raised, "the list of query 4 holds a minimum above its threshold"),
        (too_high, "for query 4 is above a member's score"),
        (loose, "for query 4 is below what the bound allows"),
    ],
)
def test_wrong_lists_do_not_pass(change: Callable[[Any, int], None], message: str) -> None:
    lists, thresholds, packed = some_lists()
    change(lists, int(lists.values[4].argmin()))
    with pytest.raises(WrongAnswer, match=message):
        bounds.check_lists(lists, thresholds, bounds.proved_rows(9), packed)


# --- first calls --------------------------------------------------------------------------------------------------


def test_a_first_call_is_timed_in_a_process_of_its_own_and_proved(tmp_path: Path) -> None:
    run = a_run(path=tmp_path / "out.csv")
    case = a_case(name="cold", n=300, m=5, work=cold.cold_start, bars=(cases.seconds(60.0, "H100"),))
    case.work(run, case)
    row, one = run.rows
    assert (row["who"], one["who"]) == ("tonari, first call", "tonari, kernels one by one")
    assert one["proved"] == 5
    assert row["proved"] == 5
    assert row["repeats"] == cold.REPEATS
    assert 0 < row["seconds_median"] < 60
    assert row["passed"]
    assert row["extras"]["again"] < row["seconds_max"]


@pytest.mark.parametrize("how", [{"prepared": True}, {"graph": True, "target": 0.9}], ids=["an index", "NN-Descent"])
def test_first_calls_of_other_verbs_are_those_that_a_case_asks_for(how: dict[str, Any], tmp_path: Path) -> None:
    run = a_run(path=tmp_path / "out.csv")
    case = a_case(name="cold", n=300, m=300 if "graph" in how else 1, work=cold.cold_start, **how)
    told = cold.first_call(run, case, {})
    proof = cold.proof_of(run, case, cold.load(run, case))
    if case.target:
        assert proof.recall(told["answer"].indices, case.k)[0] >= case.target
    else:
        assert proof.check(told["answer"], case.k) == 1


# --- warming up --------------------------------------------------------------------------------------------------


def test_a_warm_up_calls_everything_and_writes_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    class Counted:
        def search(self, *arguments: Any, **options: Any) -> Any:
            asked.append("search")
            return tonari.search(*arguments, **options)

    run = warm.WarmRun("tests", Counted(), on_h100(), "cpu", ceilings=warm.NoCeilings(), path=tmp_path / "out.csv")
    case = a_case(peers=("torch float32", "flash float32"))
    assert [name for name in case.peers if run.wants(name)] == ["flash float32"]
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
    assert warm.fits(a_case(**changes), others, jobs=2, gigabytes=10.0) is expected


def test_a_warm_up_runs_all_and_names_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    codes = {"good": "print('done')", "bad": "raise SystemExit('broken')", "slow": "import time; time.sleep(60)"}
    plan = [a_case(name=name, gigabytes=1.0) for name in codes]
    began = time.perf_counter()
    failed = warm.warm(
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


@pytest.fixture
def made_up_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA device with fixed times."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=80e9))
    monkeypatch.setattr(warm, "WHERE", "cpu")
    monkeypatch.setattr(warm, "open_device", lambda *_: on_h100())

    def opened(suite: Any, options: Any) -> Any:
        path = None if options.no_csv else options.csv
        return a_run(suite=suite.name, path=path, scale=options.scale, repeats=options.repeats)

    monkeypatch.setattr(command, "open_run", opened)


@pytest.mark.usefixtures("made_up_device")
def test_from_the_command_line_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    arguments = ["--scale", "0.002", "--csv", str(path), "--repeats", "1"]
    for pattern in ("small", "hard-copies*", "two-gpus"):
        arguments += ["--case", pattern]
    assert main.main(["run", "exact_cuda", *arguments]) == 0
    written = rows.read(path)
    ours = {row["case"]: row for row in written if row["who"] == "tonari" and row["proof"]}
    assert list(ours) == ["small", "hard-copies-16", "hard-copies"]
    assert all(row["passed"] is None for row in written)  # smaller than its size: no verdict
    assert [row["note"] for row in written if row["case"] == "two-gpus"] == ["needs 2 GPUs, there are 1"]


@pytest.mark.usefixtures("made_up_device")
def test_warming_from_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    started = []

    def warmed(plan: Sequence[Any], command_of: Callable[[Any], list[str]], **limits: float) -> list[str]:
        started.extend(command_of(case) for case in plan)
        assert limits["gigabytes"] == pytest.approx(64.0)
        return ["small"]

    monkeypatch.setattr(warm, "warm", warmed)
    arguments = ["run", "exact_cuda", "--warm-only", "--scale", "0.5", "--no-csv"]
    assert main.main([*arguments, "--case", "small", "--case", "search-k10", "--case", "two-gpus"]) == 0
    expected = [sys.executable, "-m", "benchmarks", "warm-case", "exact_cuda", "small", "0.5"]
    assert [given[5] for given in started] == ["small", "search-k10"]
    assert started[0] == expected
    assert "2 cases" in capsys.readouterr().err
    assert main.main([*expected[3:-1], "0.02"]) == 0
