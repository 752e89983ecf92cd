"""The promises of the benchmarks of approximate graphs, on small data in host memory.

Data sets keep what they say, no graph is timed that says something false, recall is measured right, rows fit the
results file, verdicts follow their bars. Graphs are made of exact ones here, with faults that are known; seconds are
made up.
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

torch = pytest.importorskip("torch", reason="these benchmarks make their data with torch")

import tonari  # noqa: E402
from tonari.metrics.recall import Recall  # noqa: E402
from tonari.metrics.reference import brute, returned, values_at  # noqa: E402

# The benchmarks are no part of the installed package: they are found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
main = importlib.import_module("benchmarks.descent")
builds, cases, curves, data, gists, memory, merges, peers, plots, proofs, rows, runs, wang2021 = (
    importlib.import_module(f"benchmarks.descent_{name}")
    for name in (
        "build",
        "cases",
        "curves",
        "data",
        "gist",
        "memory",
        "merge",
        "peers",
        "plots",
        "proof",
        "rows",
        "run",
        "wang2021",
    )
)
datasets, device, exact_cpu, verdicts = (
    importlib.import_module(f"benchmarks.{name}")
    for name in ("datasets", "select_device", "exact_cpu", "exact_gpu_rows")
)

N, K = 400, 12


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


class Library:
    """tonari whose NN-Descent has every ``lose``-th row without its nearest neighbour, and a report that says so."""

    Index, search = tonari.Index, staticmethod(tonari.search)

    def __init__(self, lose: int = 10, spoil: Callable[[Any, Any], None] | None = None) -> None:
        self.lose, self.spoil, self.asked = lose, spoil, list[dict[str, Any]]()

    def plan(self, n: int, m: int, d: int, k: int, **given: Any) -> Any:
        return SimpleNamespace(n=n, k=k, **given)

    def knn_graph(
        self, points: Any, k: int, *, method: str = "auto", threads: int | None = None, progress: bool, **given: Any
    ) -> Any:
        self.asked.append({"method": method, "n": len(points)} | given)
        found = tonari.knn_graph(points, k + 1, method="exact", threads=threads, progress=progress)
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
    """A run on a still machine of two threads."""
    options = {"ceilings": None, "threads": 2, "repeats": 2}
    return runs.DescentRun(library or Library(), changes.pop("device", Still()), "cpu", **options | changes)


def a_case(**changes: Any) -> Any:
    """A small graph, or with ``changes``."""
    options = {"name": "tiny", "device": "cpu", "n": N, "d": 16, "k": K, "data": "gaussian", "target": 0.9}
    return cases.Case(**options | changes)


def done(run: Any, case: Any) -> Any:
    """The run, after the case."""
    run.guarded(case, "tonari", lambda: case.work(run, case))
    return run


def notes(run: Any) -> str:
    return " ".join(str(row.get("note")) for row in run.rows)


def row_of(run: Any, who: str) -> dict[str, Any]:
    return next(row for row in run.rows if row["who"] == who)


# --- data sets ---------------------------------------------------------------------------------------------------


@pytest.fixture
def descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """TONARI_SIFT naming a file of 300 made-up rows; the rows."""
    found = np.random.default_rng(5).integers(0, 256, (300, 128), dtype=np.uint8)
    datasets.write_bvecs(tmp_path / "rows.bvecs", found)
    monkeypatch.setenv("TONARI_SIFT", str(tmp_path / "rows.bvecs"))
    return found


@pytest.mark.parametrize(("kind", "d"), [("sift", 128), ("mixture", 40), ("gaussian", 7)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_points_come_twice_the_same_and_are_sound(kind: str, d: int, dtype: str, descriptors: np.ndarray) -> None:
    first, second = (data.make(kind, 700, d, dtype, "cpu") for _ in range(2))
    assert first.shape == (700, d)
    assert first.dtype == getattr(torch, dtype)
    assert torch.equal(first, second)
    assert torch.isfinite(first).all()
    assert len(first.unique(dim=0)) == 700


def test_copies_of_descriptors_are_their_blocks_turned_and_moved(descriptors: np.ndarray) -> None:
    found = data.make("sift", 750, 128, "float32", "cpu").double()
    real = torch.from_numpy(descriptors).double()
    assert torch.equal(found[:300], real)
    between = torch.cdist(real, real)
    for copy in (found[300:600], found[600:]):
        # Rotations keep distances: what differs is the noise.
        expected = between[: len(copy), : len(copy)]
        apart = (torch.cdist(copy, copy) ** 2 - expected**2) / (2 * 128 * data.SIFT_NOISE**2)
        off = ~torch.eye(len(copy), dtype=torch.bool)
        assert apart[off].mean().item() == pytest.approx(1, abs=0.1)
        # They are none of the real rows, but lie around the same place.
        assert torch.cdist(copy, real).min() > 100
        assert torch.linalg.vector_norm(copy.mean(dim=0) - real.mean(dim=0)) < 0.1 * expected.mean()


def test_clusters_are_as_thin_as_they_say() -> None:
    d = 60
    law = data.mixture(1, d, "cpu")
    first = law(4000)
    spread = torch.linalg.eigvalsh(first.double().T.cov()).flip(0)
    wide = int((spread > 2 * data.NOISE**2).sum())
    assert data.INTRINSIC[0] <= wide <= data.INTRINSIC[1]
    assert (spread[wide:].mean() / data.NOISE**2).item() == pytest.approx(1, rel=0.05)
    assert (spread[:wide].sum() / (d * data.STRENGTH**2)).item() == pytest.approx(1, rel=0.05)
    # Variances fall as 1, 1/2, 1/3, ...
    assert (spread[0] / spread[9]).item() == pytest.approx(10, rel=0.2)
    assert not torch.equal(law(4000), first)


def test_gist_is_made_of_windows_of_photographs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cv2", reason="photographs are read by OpenCV")
    pytest.importorskip("skimage", reason="the photographs are those inside scikit-image")
    monkeypatch.setattr(gists, "PICTURE", 80)
    found = data.make("gist", 300, 960, "float32", "cpu")
    assert torch.equal(found, data.make("gist", 300, 960, "float32", "cpu"))
    assert (found >= 0).all()
    assert (found.mean(dim=1) > 0).all()
    assert len(found.unique(dim=0)) == 300


def test_means_over_cells_are_those_of_the_pixels() -> None:
    maps = torch.rand((70, 90, 1, 2), generator=torch.Generator().manual_seed(1))
    place = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.3, 0.7, 0.5]])
    found = gists.means(gists.integral(maps), place).view(3, 4, 4, 2)
    # The smallest window is 32 pixels and lies in the corner: cells of 8.
    expected = maps[:32, :32, 0].view(4, 8, 4, 8, 2).mean(dim=(1, 3))
    torch.testing.assert_close(found[0], expected)
    # The largest is the whole height, at the right edge.
    whole = maps[:, -70:, 0].double().mean(dim=(0, 1)).float()
    torch.testing.assert_close(found[1].mean(dim=(0, 1)), whole, rtol=0.05, atol=0)
    assert torch.isfinite(found).all()


def test_filters_answer_to_their_orientation() -> None:
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    stripes = {0: 127 + 100 * torch.cos(2 * torch.pi * 0.3 * x), 4: 127 + 100 * torch.cos(2 * torch.pi * 0.3 * y)}
    for expected, picture in stripes.items():
        finest = gists.responses(picture[:, :, None].expand(-1, -1, 3))[8:-8, 8:-8].mean(dim=(0, 1, 2))[:8]
        assert int(finest.argmax()) == expected


def test_data_refuse_what_they_have_not() -> None:
    with pytest.raises(ValueError, match="got 'moons'"):
        data.make("moons", 5, 5, "float32", "cpu")
    with pytest.raises(ValueError, match="128 dimensions, not 3"):
        data.make("sift", 5, 3, "float32", "cpu")


# --- proof -------------------------------------------------------------------------------------------------------


def test_a_graph_is_proved_timed_and_written(tmp_path: Path) -> None:
    bars = verdicts.Bar("recall@k", 0.99, home=""), verdicts.Bar("seconds", 1.0, most=True, home="")
    run = done(a_run(path=tmp_path / "descent.csv"), a_case(auto=True, bars=bars))
    assert run.wrong == 0, notes(run)
    ours = row_of(run, "tonari descent")
    # One of ten rows has lost one of its twelve neighbours, and one of its first ten.
    assert ours["recall_k"] == pytest.approx(1 - 1 / (10 * K))
    assert ours["recall_10"] == pytest.approx(1 - 1 / 100)
    assert ours["recall_k_low"] < ours["recall_k"] <= ours["recall_k_high"]
    assert (ours["phi"], ours["changed"], ours["rounds"]) == ("9 7.5", "50 3", 2)
    assert (ours["target"], ours["estimate"], ours["reached"], ours["start"]) == (0.9, 0.91, False, "clusters")
    assert ours["proved"] == N
    assert ours["input_bytes"] == N * 16 * 4
    assert ours["seconds_median"] == pytest.approx(0.001)
    exact = row_of(run, "tonari exact")
    assert (exact["recall_10"], exact["recall_k"], exact["ratio"]) == (1.0, 1.0, pytest.approx(1.0))
    assert row_of(run, "tonari auto")["note"] == "auto chose exact"
    with (tmp_path / "descent.csv").open() as file:
        assert [row["who"] for row in csv.DictReader(file)] == [row["who"] for row in run.rows]


def test_the_real_thing_passes_the_same_proof() -> None:
    run = done(a_run(tonari, repeats=1), a_case(data="mixture", auto=True, parameters=(("n_hubs", 8),)))
    assert run.wrong == 0, notes(run)
    ours = row_of(run, "tonari descent")
    assert ours["recall_k"] > 0.9
    assert ours["recall_k_low"] <= ours["estimate"] <= 1
    assert len(ours["phi"].split()) == ours["rounds"]
    assert "n_hubs=8" in ours["parameters"]


def test_the_real_merge_passes_it_too() -> None:
    run = done(a_run(tonari, repeats=1), a_case(data="mixture", split=150, work=merges.merge))
    assert run.wrong == 0, notes(run)
    assert row_of(run, "tonari merge")["recall_k"] > 0.9
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
    run = done(a_run(Library(spoil=spoil), who=("tonari descent",)), a_case())
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
    run = done(a_run(library, who=("tonari descent",)), a_case())
    assert len(calls) == 3  # one look, two rounds
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


def test_recall_is_that_of_the_first_ids_by_distance() -> None:
    points = torch.rand((80, 5), generator=torch.Generator().manual_seed(2))
    points[40:] = points[:40]  # ties: any of several will do
    truth = proofs.GraphTruth(tonari, points, 6, 30, lambda rows: rows.numpy(), {})
    own = truth.rows
    true = brute(points.numpy()[own], points.numpy(), 6, self_ids=own)
    np.testing.assert_array_equal(truth.nearest.indices, true.indices)
    ids = true.indices.astype(np.int64)
    assert truth.recall(ids, 6).by_distance == 1.0
    lost = ids.copy()
    lost[:, 0] = -1
    assert truth.recall(lost, 6).by_distance == pytest.approx(5 / 6)
    assert truth.recall(lost[:, 1:], 5).by_distance < 1.0
    again = ids.copy()
    again[:, 5] = again[:, 0]
    assert truth.recall(again, 6).by_distance == pytest.approx(5 / 6)
    np.testing.assert_array_equal(
        truth.values_of(ids), returned(values_at(points.numpy()[own], points.numpy(), ids), np.float32)
    )


@pytest.mark.parametrize(
    ("ids", "expected"),
    [([[3, 1, 3, 3]], [[3, 1, -1, -1]]), ([[-1, 2, -1]], [[-1, 2, -1]]), ([[5, 5], [4, 5]], [[5, -1], [4, 5]])],
)
def test_what_is_named_twice_counts_once(ids: Any, expected: Any) -> None:
    np.testing.assert_array_equal(proofs.once(np.array(ids)), expected)


def test_own_entries_go_and_else_the_last() -> None:
    indices = np.array([[4, 7, 2], [7, 1, 3], [5, 6, 0]])
    kept = indices[~proofs.own_places(indices, [4, 1, 9])].reshape(3, 2)
    np.testing.assert_array_equal(kept, [[7, 2], [7, 3], [5, 6]])


# --- bars and rows -----------------------------------------------------------------------------------------------


def test_time_is_worth_nothing_without_recall() -> None:
    bars = (
        verdicts.Bar("recall@10", 0.999, home=""),
        verdicts.Bar("seconds", 1.0, most=True, home=""),
        verdicts.Bar("memory", 1e9, most=True, home=""),
    )
    passed = {row["bar_on"]: row["passed"] for row in done(a_run(), a_case(bars=bars)).rows if row.get("bar_on")}
    assert passed == {"recall@10": False, "seconds": False, "memory": True}
    met = done(a_run(Library(lose=N)), a_case(bars=bars)).rows
    assert all(row["passed"] for row in met if row.get("bar_on"))


def test_what_may_be_taken_is_the_input_a_copy_and_three_graphs() -> None:
    run, case = a_run(), a_case(dtype="float16")
    assert builds.allowed_bytes(run, case) == N * 16 * (2 + 4) + 3 * N * K * 8


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
    run = done(a_run(library, device=Still(lambda: 21.0), who=("tonari descent",)), a_case())
    assert run.wrong == 0, notes(run)
    assert [asked["n"] for asked in library.asked] == [N]
    assert run.rows[0]["repeats"] == 1
    assert run.rows[0]["seconds_median"] == 21.0


def test_everything_is_compiled_with_few_points_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "WARM_ROWS", 150)
    library = Library()
    done(a_run(library, who=("tonari descent",)), a_case())
    assert [asked["n"] for asked in library.asked] == [150, N, N, N]


def test_settings_beside_the_arguments_are_of_the_plan() -> None:
    library = Library()
    done(a_run(library, who=("tonari descent",)), a_case(parameters=(("n_probe", 3),)))
    plan = library.asked[0]["plan"]
    assert (plan.n_probe, plan.recall, plan.seed, plan.method, plan.n, plan.k) == (3, 0.9, 0, "nn-descent", N, K)
    assert set(library.asked[0]) == {"method", "n", "plan"}


# --- merging, curves, peers --------------------------------------------------------------------------------------


def test_merging_is_measured_against_the_whole() -> None:
    seconds = iter([0.004, 0.001] * 3)
    bars = (
        verdicts.Bar(merges.OF_WHOLE, 0.5, most=True, home=""),
        verdicts.Bar(merges.BELOW_WHOLE, 0.003, most=True, home=""),
    )
    run = a_run(device=Still(lambda: next(seconds)))
    done(run, a_case(split=150, work=merges.merge, bars=bars))
    assert run.wrong == 0, notes(run)
    first, second, whole = run.rows
    assert (first["who"], second["who"], whole["who"]) == ("tonari merge", "tonari merge", "tonari descent")
    assert first["value"] == pytest.approx(0.25)
    assert second["value"] == pytest.approx(0.0)
    assert first["passed"] is second["passed"] is True
    assert [asked["n"] for asked in run.tonari.asked[:2]] == [150, N - 150]


def test_curves_have_a_row_for_every_setting() -> None:
    run = done(a_run(repeats=1), a_case(work=curves.curve))
    assert run.wrong == 0, notes(run)
    assert [row["who"] for row in run.rows] == ["tonari exact", *(name for name, _ in curves.ours())]
    random = [row for row in run.rows if row["who"] == curves.RANDOM]
    assert "list_size=64 n_hubs=32" in random[0]["parameters"]
    assert random[0]["target"] == pytest.approx(0.999)


def pushed(monkeypatch: pytest.MonkeyPatch, update: str, *lose: int, spoil: Callable[[Any, Any], None]) -> Any:
    """A run in which wang2021's rounds leave graphs, one after the other, that lose so much; the last is spoilt."""
    asked: list[dict[str, Any]] = []

    def build(points: Any, k: int, **given: Any) -> Any:
        asked.append(given)
        last = len(asked) == len(lose)
        library = Library(lose[len(asked) - 1], spoil if last else None)
        return library.knn_graph(points.numpy(), k, method="nn-descent", progress=False)

    monkeypatch.setattr(wang2021, "build", build)
    monkeypatch.setattr(builds, "WARM_ROWS", 150)
    monkeypatch.setattr(curves, "ROUNDS", (4,))
    monkeypatch.setattr(runs.DescentRun, "cuda", True)
    run = done(a_run(who=(f"wang2021 {update}",)), a_case(work=curves.curve))
    assert len(asked) == len(lose)
    assert all(given["update"] == update and given["rounds"] == 4 for given in asked)
    return run


def unspoilt(distances: Any, indices: Any) -> None:
    pass


@pytest.mark.parametrize("update", ["locks", "proposals"])
def test_rounds_that_push_have_a_row_for_each_number(update: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pushed(monkeypatch, update, 10, 10, 10, 10, spoil=unspoilt)
    assert run.wrong == 0, notes(run)
    (row,) = run.rows
    assert (row["who"], row["rounds"], row["start"], row["proved"]) == (f"wang2021 {update}", 4, "random", N)
    assert row["recall_k"] == pytest.approx(1 - 1 / (10 * K))
    assert row["parameters"] == "rounds=4 list_size=64 samples=32"


def test_only_behind_locks_another_run_may_make_another_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pushed(monkeypatch, "locks", 10, 10, 10, 7, spoil=unspoilt).wrong == 0
    run = pushed(monkeypatch, "proposals", 10, 10, 10, 7, spoil=unspoilt)
    assert "made again, the graph is another" in notes(run)
    run = pushed(monkeypatch, "locks", 10, 10, 10, 10, spoil=farther)
    assert "WRONG: row 7 has a distance that is not that of its point" in notes(run)


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
    # A stand-in: the real one compiles for half a minute.
    (tmp_path / "pynndescent.py").write_text(A_PEER)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("pynndescent", None)
    bar = verdicts.Bar("pynndescent", 1e9, home="")
    case = a_case(peers=("pynndescent",), peer_settings=((("n_neighbors", 20),),), bars=(bar,))
    run = done(a_run(who=("tonari descent", "pynndescent")), case)
    assert run.wrong == 0, notes(run)
    assert [row["who"] for row in run.rows] == ["tonari descent", "pynndescent"]
    run = done(a_run(who=("tonari descent", "pynndescent*")), case)
    ours, theirs, longer = run.rows
    assert longer["who"] == "pynndescent n_neighbors=20"
    assert longer["recall_k"] == 1.0
    assert ours["bar_on"] == "pynndescent"
    assert ours["passed"] is False
    # Itself and twelve others, of which every second row lacks one.
    assert theirs["recall_10"] == 1.0
    assert theirs["recall_k"] == pytest.approx(1 - 1 / (2 * K))
    assert theirs["compile_seconds"] > 0.2
    assert theirs["ratio"] == pytest.approx(ours["value"])


def test_a_peer_that_is_not_there_has_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.MODULES, peers.CUVS, "no_such_module")
    run = done(a_run(who=("*cuvs*",)), a_case(peers=(peers.CUVS,)))
    assert notes(run) == "skipped: module 'no_such_module' is not installed"
    assert run.wrong == 0


def test_lists_of_cuvs_are_without_self() -> None:
    index = SimpleNamespace(graph=np.array([[1, 2, 3], [1, 0, 2], [3, 1, 0], [0, 1, 2]], np.uint32))
    np.testing.assert_array_equal(peers.cuvs_lists(index, np.array([0, 1, 3])), [[1, 2], [0, 2], [0, 1]])


# --- the command -------------------------------------------------------------------------------------------------


def test_cases_have_names_of_their_own_and_known_data() -> None:
    for where in ("cpu", "cuda"):
        found = [case for case in cases.CASES if case.device == where]
        assert len({case.name for case in found}) == len(found)
        assert all(case.data in data.KINDS for case in found)
        assert {f"curve-{kind}" for kind in data.KINDS} <= {case.name for case in found}
    assert not any(case.name.startswith("curve-") for case in cases.chosen("cpu", None))
    with pytest.raises(SystemExit, match="no case matches 'moons'"):
        cases.chosen("cpu", ["moons"])


def test_scaled_cases_keep_their_parts() -> None:
    case = a_case(n=1000, split=500, exact_rows=300).scaled(0.1)
    assert (case.n, case.split, case.exact_rows) == (100, 50, 30)
    assert a_case(n=1000, truth_k=100).scaled(0.01).n == 400


def test_the_list_names_cases_and_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--list", "--device", "cuda"]) == 0
    shown = capsys.readouterr().out
    assert "recall@10 >= 0.99, memory <= 1, seconds <= 0.35" in shown
    assert "of the whole build <= 0.5" in shown


@pytest.mark.parametrize("option", ["--scale=0", "--repeats=0", "--budget=-1"])
def test_numbers_out_of_range_are_refused(option: str) -> None:
    with pytest.raises(SystemExit):
        main.main([option])


def test_rows_become_a_figure_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs it")
    monkeypatch.setattr(curves, "RECALLS", (0.9, 0.99))
    monkeypatch.setattr(curves, "PROBES", ())
    monkeypatch.setattr(curves, "ROUNDS", (4,))
    path = tmp_path / "descent.csv"
    bars = verdicts.Bar("recall@k", 0.9, home=""), verdicts.Bar("seconds", 1.0, most=True, home="")
    run = a_run(path=path, repeats=1)
    done(run, a_case(bars=bars))
    done(run, a_case(name="curve-gaussian", work=curves.curve))
    (drawn,) = plots.draw_all(path, tmp_path)
    assert drawn.name == "descent-recall-cpu.svg"
    assert "tonari random start" in drawn.read_text()
    table = plots.tables(path)
    assert table.count("**tonari descent**") == 1 + len(curves.RECALLS)
    assert "recall@k 0.991667 of 0.9: met; seconds 0.001 of 1: met" in table


def test_a_contestant_measured_later_stands_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "descent.csv"
    early, late = a_run(path=path), a_run(path=path, who=("tonari exact",))
    early.shared["date"], late.shared["date"] = "2026-01-01T00:00Z", "2026-01-02T00:00Z"
    for run in (early, late):
        done(run, a_case())
    found = [(row["who"], row["date"][:10]) for row in plots.newest(plots.read(path))]
    assert found == [("tonari descent", "2026-01-01"), ("tonari exact", "2026-01-02")]
