"""The benchmarks' own promises: deterministic data, no timing of a wrong answer, rows that fit the results file."""

from __future__ import annotations

import csv
import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

# The benchmarks are no part of the installed package: they are found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
children, datasets, exact_cpu, machine, peers, report = (
    importlib.import_module(f"benchmarks.{name}")
    for name in ("children", "datasets", "exact_cpu", "machine", "peers", "report")
)
main = importlib.import_module("benchmarks.__main__")

MAKERS: dict[str, Any] = {
    "gaussian": (lambda: datasets.gaussian(50, 7, 9), (50, 9), (7, 9)),
    "clustered": (lambda: datasets.clustered(50, 7, 30, clusters=4), (50, 30), (7, 30)),
    "offset": (lambda: datasets.offset(50, 7, 9, shift=1e4), (50, 9), (7, 9)),
    "tight_far_clusters": (lambda: datasets.tight_far_clusters(50, 7, 9), (50, 9), (7, 9)),
    "duplicates": (lambda: datasets.duplicates(50, 7, 9, distinct=5), (50, 9), (7, 9)),
}


@pytest.fixture
def descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """TONARI_SIFT naming a file of 40 made-up rows; the rows."""
    rows = np.random.default_rng(5).integers(0, 256, (40, 128), dtype=np.uint8)
    datasets.write_bvecs(tmp_path / "rows.bvecs", rows)
    monkeypatch.setenv("TONARI_SIFT", str(tmp_path / "rows.bvecs"))
    return rows


# --- data sets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_made_up_data_has_its_shape_and_comes_twice_the_same(name: str) -> None:
    make, points_shape, queries_shape = MAKERS[name]
    first, second = make(), make()
    assert first.points.shape == points_shape
    assert first.queries.shape == queries_shape
    assert first.points.dtype == np.float32
    assert first.points.flags.c_contiguous
    assert first.queries.flags.c_contiguous
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.queries, second.queries)


def test_seeds_differ_and_no_queries_is_none() -> None:
    assert datasets.gaussian(5, 0, 3).queries is None
    assert (datasets.gaussian(5, 0, 3).points != datasets.gaussian(5, 0, 3, seed=1).points).all()


def test_clusters_have_their_intrinsic_dimension_and_the_spread_of_images() -> None:
    rows = datasets.clustered(600, 0, 80, intrinsic=6, clusters=1, noise=0.1).points.astype(np.float64)
    strength = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    assert strength[:6].sum() / strength.sum() > 0.999
    assert strength[5] > 100 * strength[6]
    many = datasets.clustered(3000, 0, 80).points
    assert 90 < many.mean() < 110
    assert 40 < many.std() < 65


def test_clusters_wider_than_the_space_are_refused() -> None:
    with pytest.raises(ValueError, match="dimension 12 do not fit into width 8"):
        datasets.clustered(10, 0, 8)


def test_offset_is_the_shifted_data_rounded_once() -> None:
    near = datasets.offset(200, 0, 4, shift=0, dtype="float64").points
    far = datasets.offset(200, 0, 4, shift=1e4).points
    np.testing.assert_array_equal(far, (near + 1e4).astype(np.float32))


def test_tight_far_clusters_are_far_apart_and_tight() -> None:
    rows = datasets.tight_far_clusters(400, 0, 16, clusters=5, dtype="float64").points
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    same = distances < 100
    np.testing.assert_array_equal(same, same @ same)
    assert len(np.unique(same, axis=0)) == 5
    assert distances[~same].min() > 1e4


def test_duplicates_hold_all_distinct_rows_and_every_query_has_a_copy() -> None:
    points, queries = datasets.duplicates(60, 20, 3, distinct=7)
    distinct = np.unique(points, axis=0)
    assert len(distinct) == 7
    assert (queries[:, None] == distinct[None]).all(axis=2).any(axis=1).all()


def test_patches_are_pieces_of_photographs_without_copies() -> None:
    pytest.importorskip("PIL", reason="scikit-learn reads its photographs with Pillow")
    pytest.importorskip("sklearn")
    points, queries = datasets.patches(60, 5)
    assert points.shape == (60, 784)
    assert queries.shape == (5, 784)
    assert points.min() >= 0
    assert points.max() <= 255
    assert len(np.unique(points, axis=0)) == 60
    images = points.reshape(-1, 28, 28)
    # Neighbouring pixels of a photograph are alike; pixels of two patches are not.
    assert np.abs(np.diff(images, axis=2)).mean() < 0.5 * np.abs(images[1:] - images[:-1]).mean()
    np.testing.assert_array_equal(points, datasets.patches(60, 5).points)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_descriptors_come_from_the_named_file(descriptors: np.ndarray, dtype: str) -> None:
    data = datasets.sift_photo(30, dtype, m=10)
    assert data.points.dtype == dtype
    np.testing.assert_array_equal(data.points, descriptors[:30])
    np.testing.assert_array_equal(data.queries, descriptors[30:])


def test_descriptors_refuse_what_they_cannot_give(
    descriptors: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="holds 40 rows, 39 points and 2 queries"):
        datasets.sift_photo(39, m=2)
    with pytest.raises(ValueError, match="'float64'"):
        datasets.sift_photo(5, "float64")
    torn = tmp_path / "torn.bvecs"
    torn.write_bytes(bytes(131))
    with pytest.raises(ValueError, match="131 bytes"):
        datasets.read_bvecs(torn)
    torn.write_bytes(bytes(132))
    with pytest.raises(ValueError, match="row 0 says width 0"):
        datasets.read_bvecs(torn)
    monkeypatch.delenv("TONARI_SIFT")
    monkeypatch.setattr(datasets, "SIFT_DIRECTORIES", (tmp_path / "nowhere",))
    monkeypatch.setattr(datasets, "CACHE", tmp_path)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(RuntimeError, match=r"nowhere.* does not exist; computing them needs"):
        datasets.sift_photo(5)


# --- no timing of a wrong answer ---------------------------------------------------------------------------------


def small_case(**changes: Any) -> Any:
    """A search of 40 queries over 300 points without peers, or with ``changes``."""
    options = {"name": "small", "make": lambda _: datasets.gaussian(300, 40, 8), "k": 4, "against": ()}
    return exact_cpu.Case(**(options | changes))


@pytest.fixture
def library() -> Any:
    """The library, with its verbs replaceable one by one."""
    tonari = importlib.import_module("tonari")
    names = ("search", "knn_graph", "Index", "plan", "core")
    found = {name: getattr(tonari, name) for name in names if hasattr(tonari, name)}
    metrics = SimpleNamespace(reference=importlib.import_module("tonari.metrics.reference"))
    return SimpleNamespace(metrics=metrics, **found)


QUICK = exact_cpu.Settings(threads=1, repeats=2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting, and no measured ceilings: no number of these tests is a result."""
    monkeypatch.setattr(exact_cpu, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(exact_cpu, "ceiling_of", lambda *_: (1e9, "made up"))


SPOILT: dict[str, Any] = {
    "wrong index": (lambda d, i: (d, np.where(np.arange(4) == 3, (i + 1) % 300, i)), "index of row"),
    "wrong distance": (lambda d, i: (np.nextafter(d, np.float32(9)), i), "distance of row"),
    "wrong type": (lambda d, i: (d.astype(np.float64), i), "distance of row"),
    "unsorted": (lambda d, i: (d[:, ::-1], i[:, ::-1]), "out of order"),
    "twice": (lambda d, i: (d, np.where(np.arange(4) == 3, i[:, :1], i)), "holds a point twice"),
    "no such point": (lambda d, i: (d, np.where(np.arange(4) == 3, 300, i)), "outside 0 to 299"),
    "short": (lambda d, i: (d[:, :3], i[:, :3]), "expected k = 4"),
    "a row lost": (lambda d, i: (d[:-1], i[:-1]), "39 rows, expected 40"),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_wrong_answer_is_not_timed(fault: str, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, message = SPOILT[fault]
    honest = library.search

    def search(*arguments: Any, **options: Any) -> Any:
        distances, indices = spoil(*honest(*arguments, **options))
        return SimpleNamespace(distances=distances, indices=indices)

    timed: list[object] = []
    monkeypatch.setattr(exact_cpu, "take_turns", lambda *_: timed.append(1))
    library.search = search
    with pytest.raises(exact_cpu.WrongAnswer, match=message):
        exact_cpu.run_case(library, small_case(), QUICK)
    assert not timed


def test_equal_distances_must_come_by_index() -> None:
    distances = np.zeros((1, 2), np.float32)
    exact_cpu.check_rows(exact_cpu.Timed(0, distances, np.array([[1, 5]])), 9, 2, descending=False, graph=False)
    with pytest.raises(exact_cpu.WrongAnswer, match="row 0 is out of order"):
        exact_cpu.check_rows(exact_cpu.Timed(0, distances, np.array([[5, 1]])), 9, 2, descending=False, graph=False)


def test_a_graph_must_not_hold_self() -> None:
    found = exact_cpu.Timed(0, np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[1, 2], [1, 2]]))
    with pytest.raises(exact_cpu.WrongAnswer, match="row 1 holds itself"):
        exact_cpu.check_rows(found, 3, 2, descending=False, graph=True)


@pytest.mark.parametrize("metric", ["euclidean", "inner_product", "cosine", "l1"])
def test_agreement_allows_rounding_and_no_more(metric: str, library: Any) -> None:
    case = small_case(metric=metric)
    data = case.make(1)
    truth = library.metrics.reference.brute(data.queries, data.points, 4, metric)
    ours = exact_cpu.Timed(0, truth.distances, truth.indices)
    first_rows = exact_cpu.Timed(0, truth.distances[:30] * np.float32(1 + 2e-7), truth.indices[:30].astype(np.int64))
    assert exact_cpu.agreement(ours, first_rows, case, data) == 1.0
    off = truth.distances.copy()
    off[17, 2] *= 1.01
    with pytest.raises(exact_cpu.WrongAnswer, match="row 17 disagrees"):
        exact_cpu.agreement(ours, exact_cpu.Timed(0, off, truth.indices), case, data)
    missing = exact_cpu.Timed(0, np.where(off == off[17, 2], np.nan, truth.distances), truth.indices)
    with pytest.raises(exact_cpu.WrongAnswer, match="row 17 disagrees"):
        exact_cpu.agreement(ours, missing, case, data)


def test_agreement_counts_shared_indices(library: Any) -> None:
    case = small_case()
    data = case.make(1)
    truth = library.metrics.reference.brute(data.queries, data.points, 4)
    swapped = truth.indices.copy()
    swapped[:, 3] = np.setdiff1d(np.arange(300), truth.indices)[0]
    ours = exact_cpu.Timed(0, truth.distances, truth.indices)
    assert exact_cpu.agreement(ours, exact_cpu.Timed(0, truth.distances, swapped), case, data) == 0.75


def test_without_self_drops_the_own_entry_or_the_last() -> None:
    indices = np.array([[0, 3, 4], [3, 1, 4], [3, 4, 5]])
    distances, kept = exact_cpu.without_self(indices * 10.0, indices)
    np.testing.assert_array_equal(kept, [[3, 4], [3, 4], [3, 4]])
    np.testing.assert_array_equal(distances, kept * 10.0)


# --- running -----------------------------------------------------------------------------------------------------


CASES_TO_RUN: dict[str, dict[str, Any]] = {
    "search": {"against": ("tonari euclidean",), "metric": "cosine"},
    "graph": {"make": lambda _: datasets.gaussian(150, 0, 8), "graph": True},
    "prepared, one by one": {"prepared": True, "single": True},
}


@pytest.mark.parametrize("kind", CASES_TO_RUN)
def test_rows_fit_the_results_file(kind: str, library: Any, tmp_path: Path) -> None:
    rows = exact_cpu.run_case(library, small_case(**CASES_TO_RUN[kind]), QUICK)
    path = tmp_path / "new" / "results.csv"
    report.append(path, rows)
    report.append(path, rows)
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == report.COLUMNS
    assert [len(line) for line in lines] == [len(header)] * (2 * len(rows))
    line = dict(zip(header, lines[0], strict=True))
    assert line["case"] == "small"
    assert line["m"] == {"search": "40", "graph": "150", "prepared, one by one": "1"}[kind]
    assert int(line["verified"]) > 0
    assert float(line["seconds_min"]) <= float(line["seconds_median"]) <= float(line["seconds_max"])
    assert line["bar"] == ""
    table = report.table(rows)
    assert len(table.splitlines()) == 1 + len(rows)


def test_the_results_file_keeps_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("case,seconds\nold,1\n")
    with pytest.raises(ValueError, match="other columns"):
        report.append(path, [{"case": "small"}])
    assert path.read_text() == "case,seconds\nold,1\n"
    with pytest.raises(ValueError, match="no such columns: \\['colour'\\]"):
        report.append(tmp_path / "new.csv", [{"colour": 1}])


def test_the_fastest_peer_carries_the_bar(library: Any) -> None:
    case = small_case(against=("slow", "fast"), bars={"generic": 2.0, "avx2": 2.0, "avx512": 2.0, "amx": 2.0})
    rivals: list[Any] = [SimpleNamespace(name="slow"), SimpleNamespace(name="fast")]
    seconds = {"tonari euclidean": [1.0, 1.2, 0.9], "slow": [9.0, 9.0, 9.0], "fast": [1.5, 1.6, 1.4]}

    def rows(rivals: list[Any], **changes: Any) -> list[dict[str, Any]]:
        settings = exact_cpu.Settings(**({"threads": 2, "repeats": 3} | changes))
        found: list[dict[str, Any]] = exact_cpu.describe_results(
            library, case, case.make(1), settings, 40, seconds, rivals, {}
        )
        return found

    slow, fast = rows(rivals)
    assert (slow["bar"], slow["passed"]) == (None, None)
    assert (fast["bar"], fast["passed"], fast["ratio"]) == (2.0, False, 1.5)
    # Without the faster one nothing can be said about "the better of the two"; nor at another size or thread count.
    assert rows(rivals[:1])[0]["bar"] is None
    assert rows(rivals, scale=0.5)[1]["bar"] is None
    assert rows(rivals, threads=4)[1]["bar"] is None


def test_every_workload_has_bars_and_known_peers() -> None:
    for case in exact_cpu.CASES.values():
        assert set(case.bars) == {"amx", "avx512", "avx2"}
        assert set(case.against + case.beside) <= {*peers.PEERS, "tonari euclidean"}
        for name in set(case.against + case.beside) & set(peers.PEERS):
            assert case.metric in peers.PEERS[name].metrics


@pytest.mark.parametrize(
    ("name", "metric"), [(peer.name, metric) for peer in peers.PEERS.values() for metric in sorted(peer.metrics)]
)
def test_peers_answer_in_our_meaning(name: str, metric: str, library: Any) -> None:
    peer = peers.PEERS[name]
    if peer.missing():
        pytest.skip(peer.missing())
    case = small_case(metric=metric)
    data = case.make(1)
    truth = library.metrics.reference.brute(data.queries, data.points, 4, metric)
    distances, indices = peer.prepare(data.points, metric, 1)(data.queries, 4)
    np.testing.assert_array_equal(indices, truth.indices)
    np.testing.assert_allclose(distances, truth.distances, rtol=1e-4, atol=1e-5)


def test_a_peer_that_is_slow_gets_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Slow:
        name = "slow"

        def search(self, request: Any) -> Any:
            rows = request.stop - request.start
            asked.append(rows)
            return peers.Reply(0.5, rows * 0.01, np.zeros((rows, 4)), np.zeros((rows, 4), int))

    theirs = exact_cpu.Theirs(Slow(), small_case(), 100_000, seconds=100.0)
    assert theirs.rows == 8192
    assert theirs.run().seconds == pytest.approx(1000.5)
    assert asked[-1] == 8192
    assert exact_cpu.Theirs(Slow(), small_case(), 100_000, seconds=5.0).rows == 500
    assert exact_cpu.Theirs(Slow(), small_case(), 3000, seconds=100.0).rows == 3000


def fail(connection: Any, message: str) -> None:
    connection.recv()
    raise OSError(message)


def test_a_failing_child_reports_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, str(Path(__file__).parent)]))
    child = children.Child(fail, "out of luck", variables={})
    with pytest.raises(RuntimeError, match="OSError: out of luck"):
        child.ask(None)
    child.close()


def test_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_BENCH_A", "1")
    with children.environment({"TONARI_BENCH_A": None, "TONARI_BENCH_B": "2"}):
        assert "TONARI_BENCH_A" not in os.environ
        assert os.environ["TONARI_BENCH_B"] == "2"
    assert os.environ["TONARI_BENCH_A"] == "1"
    assert "TONARI_BENCH_B" not in os.environ


# --- the command line --------------------------------------------------------------------------------------------


def test_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(exact_cpu.CASES)


def test_patterns_choose_cases() -> None:
    assert [case.name for case in main.chosen_cases(["graph-*", "l1"])] == ["graph-sift-f32", "graph-sift-u8", "l1"]
    with pytest.raises(SystemExit, match="no case matches 'grap'"):
        main.chosen_cases(["grap"])


def test_each_instruction_set_runs_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        commands.append(command[3:])
        return SimpleNamespace(returncode=len(commands) - 1)

    monkeypatch.setattr(main.subprocess, "run", run)
    assert main.main(["run", "--isa", "amx", "--case", "l1", "--isa=avx2", "--no-csv"]) == 1
    assert commands == [
        ["run", "--case", "l1", "--no-csv", "--isa", "amx"],
        ["run", "--case", "l1", "--no-csv", "--isa", "avx2"],
    ]


def test_levels_build_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "avx2 fma f16c bmi2 amx_tile amx_bf16 amx_int8"
    monkeypatch.setattr(machine, "_cpuinfo", lambda key: flags)
    assert machine.levels() == ["generic", "avx2"]
