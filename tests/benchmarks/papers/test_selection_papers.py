"""The papers on selection: sizes, figures, and points that are measured once for all figures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still, done

torch = pytest.importorskip("torch", reason="these benchmarks make their data with torch")

from benchmarks import __main__ as main  # noqa: E402
from benchmarks.harness import plots, rows  # noqa: E402
from benchmarks.papers import sweep  # noqa: E402
from benchmarks.papers.komarov2014 import selection as komarov2014  # noqa: E402
from benchmarks.papers.matsumoto2015 import PAPER as MATSUMOTO  # noqa: E402
from benchmarks.papers.tang2015 import selection as tang2015  # noqa: E402
from benchmarks.suites.select import grid, measure  # noqa: E402

Selected = tuple[Any, Any]
PAPERS = {paper.name: paper for paper in (tang2015.PAPER, MATSUMOTO, komarov2014.PAPER)}


def stable(values: Any, k: int, counters: Any = None, **_: Any) -> Selected:
    """Select by a stable sort, for NumPy and torch."""
    lines = torch.as_tensor(values)
    order = torch.sort(lines, dim=1, stable=True)
    found = order.values[:, :k], order.indices[:, :k].to(torch.int32)
    if counters is not None:
        counters.updates = np.full(k, 2 * len(lines))
        counters.merges, counters.lanes, counters.compression_ratio, counters.threshold_ratio = 3, 16, 8.0, 0.5
    return found if torch.is_tensor(values) else (found[0].numpy(), found[1].numpy())


def a_run(path: Path | None = None, select: Callable[..., Any] = stable, **changes: Any) -> Any:
    """Make a run with a stand-in library on a machine with fixed times."""
    defaults: dict[str, Any] = {"device": Still(slice_rows=4), "repeats": 3}
    return bench_checks.a_run(SimpleNamespace(select_k=select), path=path, **defaults | changes)


# --- papers ------------------------------------------------------------------------------------------------------


def test_the_closed_form_is_the_mean_of_insertion_queues() -> None:
    n, k, rows = 40, 6, 4000
    values = np.random.default_rng(4).random((rows, n))
    updates = np.zeros((rows, k))
    queue = np.full((rows, k), np.inf)  # descending, with the head first
    for x in values.T:
        enters = x < queue[:, 0]
        place = (queue > x[:, None]).sum(axis=1) - 1  # after the head is removed and the larger entries have moved
        for row in np.flatnonzero(enters):
            updates[row, : place[row] + 1] += 1
            queue[row, : place[row]] = queue[row, 1 : place[row] + 1]
            queue[row, place[row]] = x[row]
    error = 5 * updates.std(axis=0) / np.sqrt(rows)
    assert (np.abs(updates.mean(axis=0) - tang2015.closed_form(n, k)) <= error).all()
    assert error.max() < 0.3


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_tang2015_has_the_sizes_of_the_paper(kind: str) -> None:
    points = list(PAPERS["tang2015"].points(a_run(device=Still(kind=kind))))
    assert {point.figure for point in points} == set(PAPERS["tang2015"].figures)
    timed = [point for point in points if not point.counted]
    assert {point.rows for point in timed} == {2**13}
    assert {(point.n, point.k) for point in timed} == {
        *((2**15, 2**i) for i in range(5, 11)),
        *((2**i, 2**8) for i in range(13, 17)),
    }
    counted = [point for point in points if point.counted]
    assert {point.figure for point in counted} == {"5"}
    assert {(point.n, point.k) for point in counted} == {(2**15, 2**i) for i in range(5, 11)}


def test_matsumoto2015_takes_no_sample_smaller_than_k_and_varies_one_thing_at_a_time() -> None:
    points = list(PAPERS["matsumoto2015"].points(a_run()))
    assert {point.figure for point in points} == set(PAPERS["matsumoto2015"].figures)
    sampled = [point for point in points if "samples" in point.options]
    assert all(point.k <= point.options["samples"] <= point.n for point in sampled)
    varied_in = {"5": "samples", "7": "k", "9": "batch", "10": "n", "11": "k", "12": "rows"}
    varied_in |= {f"{figure}-large": varied_in[figure] for figure in ("10", "11", "12")}
    for figure, varied in varied_in.items():
        mine = [point for point in points if point.figure == figure and point.data == "uniform"]
        # Where n_S is 8 k, both numbers vary.
        mine = [point for point in mine if "n_S = 8 k" not in point.series]
        values = {
            name: {point.options.get(name, getattr(point, name, None)) for point in mine}
            for name in ("samples", "batch", "rows", "n", "k")
        }
        assert {name for name, found in values.items() if len(found) > 1} == {varied}
    on_gpu = PAPERS["matsumoto2015"].points(a_run(device=Still(kind="cuda")))
    assert "9" not in {point.figure for point in on_gpu}


def test_matsumoto2015_has_the_papers_sizes_by_name_on_a_cpu() -> None:
    for kind, queries in {"cpu": {32}, "cuda": {512}}.items():
        points = [point for point in MATSUMOTO.points(a_run(device=Still(kind=kind))) if "-large" in point.figure]
        assert {point.n for point in points if point.figure == "10-large"} == {250_000, 500_000, 1_000_000, 2_213_937}
        assert {(point.n, point.k) for point in points if point.figure == "11-large"} == {
            (2_213_937, 2**i) for i in range(5, 10)
        }
        assert {point.n for point in points if point.figure == "12-large"} == {269_648}
        assert {point.rows for point in points if point.figure in ("10-large", "11-large")} == queries
        assert {case.rare for case in MATSUMOTO.suite().chosen(kind, ["*-large"])} == {kind == "cpu"}


def test_what_only_rare_figures_need_is_not_made_for_the_others() -> None:
    def points(_: Any) -> list[Any]:
        return [
            sweep.Point("1", "a", 3, 20, 2, "heap"),
            sweep.Point("2", "a", 3, 500, 2, "heap"),
        ]

    paper = sweep.Paper("test", ("1", "2"), points, lambda *_: [], rare={"2": ("cpu",)})
    run = a_run()
    for name, values in {"fig1": 60, "fig2": 1500}.items():
        (case,) = paper.suite().chosen("cpu", [name])
        done(run, case)
        (source,) = run.kept.values()
        assert source.values == {"random": values}
    assert [row["n"] for row in run.rows] == [20, 500]


def test_figures_5_and_7_count_what_the_papers_own_threshold_leaves() -> None:
    """k n / n_S values are expected at or below the k-th of n_S samples, and never fewer than k."""
    tonari = importlib.import_module("tonari")
    run = a_run(select=tonari.select_k, scale=2**-4)
    (case,) = MATSUMOTO.suite().chosen("cpu", ["fig7"])
    done(run, case)
    assert run.wrong == 0
    rows = [row for row in run.rows if row["data"] == "uniform"]
    left = {(row["extras"]["series"], row["k"]): row["extras"]["counters"]["compression_ratio"] for row in rows}
    for k in (32, 64, 128):
        assert 4 < left["uniform, the paper's rank, n_S = 8 k: ratios", k] < 9
        assert 0.5 * 512 / k < left["uniform, the paper's rank: ratios", k] < 1.1 * 512 / k
        assert left["uniform: ratios", k] > left["uniform, the paper's rank: ratios", k]


def test_table_2_has_every_kind_of_data_in_one_shape() -> None:
    points = [point for point in komarov2014.points(a_run()) if point.figure == "table 2"]
    assert len({(point.rows, point.n) for point in points}) == 1
    for k in komarov2014.SIZES_K:
        assert [point.data for point in points if point.k == k] == list(komarov2014.TABLE_DATA)


def test_table_2_tells_mean_and_deviation_of_what_was_measured() -> None:
    kinds = {"uniform": 1e-3, "random": 3e-3, "sift": None}
    rows = [{"series": "k = 8: quick", "data": kind, "seconds_median": value} for kind, value in kinds.items()]
    head, line = komarov2014.table(rows).splitlines()
    assert head.split()[-2:] == ["mean", "deviation"]
    assert line.split() == ["k", "=", "8:", "quick", "1", "3", "2", "50", "%"]


def test_komarov2014_keeps_the_number_of_values() -> None:
    for kind in ("cpu", "cuda"):
        points = list(PAPERS["komarov2014"].points(a_run(device=Still(kind=kind))))
        assert {point.rows * point.n for point in points if point.figure in "78"} == {komarov2014.PRODUCT[kind]}
        assert {point.rows for point in points if point.figure == "9"} == {2**i for i in range(14)}


def test_equal_points_are_measured_once_and_written_for_each_figure(tmp_path: Path) -> None:
    asked: list[str] = []

    def select(values: Any, k: int, **options: Any) -> Selected:
        asked.append(str(k))
        return stable(values, k, counters=options.get("counters"))

    def points(_: Any) -> list[Any]:
        timed = [sweep.Point(figure, "a", 3, 20, 2, "heap", {"buffer": "full"}) for figure in ("1", "2")]
        return [
            *timed,
            sweep.Point("2", "b", 3, 20, 4, "heap", counted=True),
            sweep.Point("2", "too large", 3, 20, 21, "heap"),
            sweep.Point("3", "not asked for", 3, 20, 9, "heap"),
        ]

    paper = sweep.Paper("test", ("1", "2", "3"), points, lambda *_: [], lambda c, p: {"merges": c.merges, "k": p.k})
    suite, path = paper.suite(), tmp_path / "select.csv"
    run = a_run(path, select=select)
    for case in suite.chosen("cpu", ["fig1", "fig2"]):
        done(run, case)
    assert [(row["figure"], row["extras"]["series"]) for row in run.rows] == [("1", "a"), ("2", "a"), ("2", "b")]
    assert run.rows[0] | {"figure": "2", "case": "fig2"} == run.rows[1]
    assert set(asked) == {"2", "4"}
    assert asked.count("2") == 1 + run.rows[0]["repeats"]
    back = rows.read(path)
    assert back[0]["parameters"] == {"method": "heap", "nan": "last", "buffer": "full"}
    assert back[2]["extras"]["counters"] == {"merges": 3, "k": 4}
    assert back[2]["seconds_median"] is None


def test_the_newest_run_that_measured_a_figure_is_drawn() -> None:
    def row(date: str, where: str, device: str = "cpu", seconds: float | None = 1.0) -> dict[str, Any]:
        facts = {"suite": "p", "figure": "5", "device": device, "extras": {"series": "a"}, "parameters": {}}
        return facts | {"date": date, "machine": where, "seconds_median": seconds}

    old, new = row("2026-01-01", "a"), row("2026-01-02", "a")
    found = [old, new, row("2026-01-02", "b", "cuda"), row("2026-01-03", "a", seconds=None)]
    assert [one["date"] for one in sweep.newest_of(found, "p", "5", "cpu")] == ["2026-01-02"]
    assert sweep.newest_of(found, "p", "6", "cpu") == []
    assert sweep.newest_of([found[3]], "p", "5", "cpu") == []


def test_improvements_are_over_the_bare_queue() -> None:
    found = {"bare": [(32, 4.0), (64, 9.0)], "fast": [(32, 2.0), (64, 3.0), (128, 1.0)], "none": []}
    assert sweep.improvements(found, "bare") == {"fast": [(32, 2.0), (64, 3.0)], "none": []}
    assert sweep.improvements({"fast": [(32, 2.0)]}, "bare") == {"fast": []}


def test_quick_is_compared_in_its_faster_form() -> None:
    found = {
        "k = 8: quick, warp": [(1, 2.0), (2, 2.0)],
        "k = 8: quick, block": [(1, 1.0), (2, 4.0)],
        "k = 8: bitonic": [(1, 3.0), (2, 3.0), (3, 3.0)],
        "k = 16: bitonic": [(1, 3.0)],
    }
    assert komarov2014.speedups(found, "bitonic") == {"k = 8": [(1, 3.0), (2, 1.5)], "k = 16": []}


@pytest.mark.parametrize("name", PAPERS)
def test_figures_are_measured_and_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="only drawing needs matplotlib")
    path = tmp_path / "select.csv"
    suite = main.load(name)
    run = a_run(path, suite=name, scale=2**-8)
    for case in suite.chosen("cpu", ["fig*", *(["table*"] if PAPERS[name].tables else [])]):
        done(run, case)
    assert run.wrong == 0
    assert len(run.rows) > 20
    written = rows.read(path)
    figures = [figure for figure in PAPERS[name].figures if figure not in PAPERS[name].tables]
    assert {row["figure"] for row in written} == set(PAPERS[name].figures)
    # Drawing a figure takes a second: all figures are made, but only two are drawn, always the same.
    for figure in figures:
        assert PAPERS[name].panels(figure, [sweep.ready(row) for row in sweep.newest_of(written, name, figure, "cpu")])
    few = [row for row in written if row["figure"] in (figures[0], *PAPERS[name].tables)]
    for _ in range(2):
        (drawn,) = filter(None, [figure.write(tmp_path / "images") for figure in suite.figures(few)])
    text = drawn.read_text()
    assert drawn.name == f"select-{name}-fig{figures[0]}-cpu.svg"
    assert f"{name}, figure {figures[0]}<" in text
    assert ">a machine, made up, 2 threads, 20" in text
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert (any(line[:4] == ["insertion,", "buffer", "+", "HP"] for line in lines)) == (name == "tang2015")


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_method_and_option_that_is_measured_exists(kind: str) -> None:
    make_options = importlib.import_module("tonari.select.registry").make_options
    named = list(grid.variants(kind))
    for paper in PAPERS.values():
        named += [(point.method, dict(point.options)) for point in paper.points(a_run(device=Still(kind=kind)))]
    methods = set()
    for method, options in named:
        if method not in measure.PEERS and method != "auto":
            make_options(method, options, kind)
            methods.add(method)
    assert methods == set(importlib.import_module("tonari.select.registry").METHODS)


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    panel = plots.Panel("", "k", "seconds", {"series": []})
    assert not plots.draw(tmp_path / "none.svg", [panel], "")
    assert not (tmp_path / "none.svg").exists()
