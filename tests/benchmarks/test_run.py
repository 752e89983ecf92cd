"""Runs: errors become rows, time limits, verdicts by bars, and the command for all suites."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import __main__ as main
from benchmarks.harness import command, rows, run
from benchmarks.harness.case import Bar, Suite
from benchmarks.harness.device import take_turns
from tests.helpers.bench_checks import Still, a_case, a_run, notes

CUDA = {"kind": "cuda", "title": "NVIDIA H100, made up"}


# --- verdicts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bar", "value", "title", "scale", "passed"),
    [
        (Bar("seconds", 2.0, most=True), 2.0, "NVIDIA H100", 1, True),
        (Bar("seconds", 2.0, most=True), 2.1, "NVIDIA H100", 1, False),
        (Bar("of copy", 0.7), 0.7, "NVIDIA H100", 1, True),
        (Bar("of copy", 0.7), 0.69, "NVIDIA H100", 1, False),
        (Bar("of copy", 0.7), 0.8, "NVIDIA H200", 1, None),
        (Bar("of copy", 0.7), 0.8, "NVIDIA H100", 0.5, None),
        (Bar("speed-up", 1.85, home=""), 1.9, "NVIDIA H200", 1, True),
    ],
)
def test_verdicts(bar: Bar, value: float, title: str, scale: float, passed: bool | None) -> None:
    opened = a_run(device=Still(kind="cuda", title=title), scale=scale)
    (verdict,) = opened.verdicts([bar], {bar.on: value})
    assert verdict == {"bar_on": bar.on, "bar": bar.bound, "value": value, "passed": passed}


def test_bars_of_a_processor_are_judged_with_two_threads_and_their_instruction_set() -> None:
    bar = Bar("seconds", 1.0, most=True, home="")
    measured = {"seconds": 0.5}
    assert a_run().verdicts((bar,), measured)[0]["passed"] is True
    assert a_run(device=Still(threads=1)).verdicts((bar,), measured)[0]["passed"] is None
    assert a_run(scale=0.5).verdicts((bar,), measured)[0]["passed"] is None
    assert a_run().verdicts((bar,), {}) == [{}]
    only = Bar("seconds", 1.0, home="", isa="amx")
    assert [a_run().judges(only), a_run().judges(only, "amx")] == [False, True]


def test_bars_as_text() -> None:
    assert str(Bar("seconds", 0.0075, most=True)) == "seconds <= 0.0075"
    assert str(Bar("times faster", 3, isa="amx")) == "times faster >= 3 (amx)"


# --- cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", main.NAMES)
def test_every_case_can_be_made_small_and_fits_the_results(name: str) -> None:
    suite = main.load(name)
    assert suite.name == name
    assert suite.path.exists()
    names = [(case.device, case.name) for case in suite.cases]
    assert len(set(names)) == len(names)
    for case in suite.cases:
        assert set(case.columns()) <= set(rows.COLUMNS)
        assert case.device in rows.DEVICES
        small = case.scaled(1e-6)
        assert max(small.k, small.truth_k) < small.n <= case.n or not case.n
        assert small.m <= case.m
        assert small.graph == (small.m == small.n and small.graph)
        assert small.single == case.single
        assert case.scaled(1) is case


def test_scaled_cases_keep_their_parts() -> None:
    case = a_case(n=1000, m=400, split=500, exact_rows=300, chunk=100, grid=((80, 3),)).scaled(0.1)
    assert (case.n, case.m, case.split, case.exact_rows, case.chunk, case.grid) == (100, 40, 50, 30, 10, ((8, 3),))
    assert a_case(n=1000, truth_k=100).scaled(0.01).n == 400
    graph = a_case(n=1000, m=1000, graph=True).scaled(0.1)
    assert (graph.n, graph.m, graph.queries) == (100, 100, 0)
    single = a_case(m=1, asked=32).scaled(0.1)
    assert (single.m, single.queries, single.single) == (1, 32, True)


def test_cases_are_chosen_by_pattern_and_device() -> None:
    cases = (a_case(name="one"), a_case(name="two"), a_case(name="two", device="cuda"), a_case(name="far", rare=True))
    suite = Suite("tests", "tests", cases, ())
    assert [case.name for case in suite.chosen("cpu", None)] == ["one", "two"]
    assert [case.name for case in suite.chosen("cpu", ["f*", "one"])] == ["one", "far"]
    assert [case.device for case in suite.chosen("cuda", ["*"])] == ["cuda"]
    with pytest.raises(SystemExit, match="no case of tests on cuda matches 'one'; there are: two"):
        suite.chosen("cuda", ["one"])


def test_no_case_was_lost() -> None:
    counts = {name: len(main.load(name).cases) for name in main.NAMES}
    assert counts == {
        "bits": 7 + 2,
        "consumers": 16,
        "contraction": 5,
        "exact_cpu": 24 + 6,
        "exact_cuda": 32 + 3 + 11 + 6 + 5,
        "filters": 8 + 1 + 18,
        "kdtree": 54 + 8 + 2,
        "nn_descent": 19,
        "promises": 5,
        "radius": 4,
        "radius_cuda": 3,
        "radius_rules": 20,
        "select": 82 + 10 + 8 + 4 + 2 + 128,
        "shards": 10,
        "small": 13 + 1,
        "spanning": 6,
        "sparse": 7,
        "tang2015": 12 + 2,
        "matsumoto2015": 15 + 6 + 2,
        "komarov2014": 14 + 6,
        "gieseke2014": 19,
        "wang2021": 14,
    }


# --- a run -------------------------------------------------------------------------------------------------------


def test_calls_back_to_back_share_the_time() -> None:
    calls: list[int] = []
    opened = a_run(device=Still(lambda: 0.5), repeats=3)
    assert opened.time(lambda: calls.append(1), loops=100) == (0.005, 0.005, 0.005, 3)
    assert len(calls) == 400


def test_long_calls_are_timed_less_often() -> None:
    for seconds, timed, ran in ((0.5, 7, 8), (2.0, 3, 4), (30.0, 1, 1)):
        calls: list[int] = []
        still = Still(lambda seconds=seconds: seconds)
        timing = a_run(device=still, repeats=7).time(lambda calls=calls: calls.append(1))
        assert timing.repeats == timed
        assert len(calls) == ran
        assert timing.median == seconds


def test_turns_end_when_their_seconds_are_spent() -> None:
    ticks = iter([3.0, 1.0, 2.0] * 3)
    calls: dict[str, Callable[[], object]] = {"one": lambda: None}
    found = take_turns(Still(lambda: next(ticks)), calls, seconds=8.0)["one"]
    assert found == (2.5, 1.0, 3.0, 4)  # the fourth one makes nine seconds
    assert take_turns(Still(), calls, seconds=9.0, most=4)["one"].repeats == 4
    assert take_turns(Still(), calls, seconds=0.0, least=2)["one"].repeats == 2


def fail(error: Exception) -> Callable[..., None]:
    def work(*_: Any) -> None:
        raise error

    return work


def test_faults_are_rows_and_only_ours_are_told() -> None:
    opened, case = a_run(), a_case()
    opened.guarded(case, "cuvs", fail(RuntimeError("no\nsuch thing")))
    assert opened.wrong == 0
    opened.guarded(case, "tonari", fail(MemoryError()))
    opened.guarded(case, "tonari screen", fail(ValueError("x")))
    opened.guarded(case, "tonari", fail(run.WrongAnswer("row 3")))
    assert opened.wrong == 3
    assert [row["note"] for row in opened.rows] == [
        "FAILED: RuntimeError: no such thing",
        "out of memory",
        "FAILED: ValueError: x",
        "WRONG: row 3",
    ]
    with pytest.raises(run.Poisoned):
        opened.guarded(case, "cuvs", fail(RuntimeError("CUDA error: an illegal memory access was encountered")))


def test_torchs_lack_of_memory_is_known() -> None:
    torch = pytest.importorskip("torch")
    assert run.note_of(torch.OutOfMemoryError("CUDA out of memory")) == "out of memory"


def test_what_was_not_run_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    opened = a_run(device=Still(**CUDA), deadline=time.perf_counter() + 60, gpus=1)

    def works(run: Any, case: Any) -> None:
        run.write(case, [{"who": "tonari"} | Bar("seconds", 1.0, most=True).verdict(0.5, judged=True)])

    run.run_cases(
        opened,
        [
            a_case(work=works),
            a_case(name="long", cost=100.0),
            a_case(name="pair", gpus=2),
            a_case(name="broken", work=fail(KeyError("gone"))),
            a_case(name="bad", work=fail(RuntimeError("CUDA error: an illegal memory access"))),
            a_case(name="later"),
        ],
    )
    found = {row["case"]: row.get("note", "") for row in opened.rows}
    assert found["tiny"] == ""
    assert found["long"] == "not reached"
    assert found["pair"] == "needs 2 GPUs, there are 1"
    assert found["broken"] == "FAILED: KeyError: 'gone'"
    assert found["bad"].startswith("FAILED: RuntimeError: CUDA error")
    assert found["later"].startswith("not reached: the device")
    assert "1 of 1 bars met; 2 wrong or failed" in capsys.readouterr().out


def test_data_are_kept_until_others_are_made() -> None:
    opened, made = a_run(), []
    for key in ("a", "a", "b"):
        opened.keep(key, lambda key=key: made.append(key))
        opened.also("truth", lambda key=key: made.append(f"truth of {key}"))
    assert made == ["a", "truth of a", "b", "truth of b"]


def test_contestants_are_wanted_by_pattern() -> None:
    opened = a_run(who=("tonari*", "faiss"))
    assert [opened.wants(name) for name in ("tonari auto", "faiss", "sklearn")] == [True, True, False]
    assert a_run().wants("anyone")


# --- the command line --------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace exact_cpu by a suite of one case on a machine with fixed times; return the options of its run."""
    seen: list[Any] = []

    def work(opened: Any, case: Any) -> None:
        if case.name == "bad":
            raise run.WrongAnswer("row 3")
        opened.write(case, [{"who": "tonari", "note": "done"}])

    suite = Suite("exact_cpu", "exact_cpu", (a_case(work=work), a_case(name="bad", work=work)), (), torch=False)

    def opened(suite: Suite, options: Any) -> Any:
        seen.append(options)
        return a_run(path=None if options.no_csv else options.csv, scale=options.scale)

    monkeypatch.setattr(main, "load", lambda name: suite)
    monkeypatch.setattr(command, "open_run", opened)
    monkeypatch.setattr(command, "settle", lambda options: None)
    return seen


def test_a_run_from_the_command_line_to_the_file(
    tiny: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.csv"
    assert main.main(["run", "exact_cpu", "--case", "tiny", "--csv", str(path), "--scale", "0.5"]) == 0
    assert [(row["case"], row["n"], row["note"]) for row in rows.read(path)] == [("tiny", 250, "done")]
    assert "a machine, made up, 2 threads" in capsys.readouterr().out
    (options,) = tiny
    assert (options.device, options.repeats, options.peer_seconds) == ("cpu", 5, 5.0)


def test_the_exit_status_tells_of_wrong_answers(tiny: list[Any]) -> None:
    assert main.main(["run", "exact_cpu", "--no-csv"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [["--scale", "2"], ["--scale", "0"], ["--repeats", "0"], ["--budget", "-1"], ["--threads", "0"]],
)
def test_numbers_out_of_range_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match=f"{arguments[0]} is {arguments[1]}.*, expected above 0"):
        main.main(["run", "exact_cpu", *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "select", "--warm"], "--warm compiles for exact_cuda only"),
        (["run", "tang2015", "--case", "fig12"], "no case of tang2015 on cpu matches 'fig12'"),
        (["run", "wang2021", "--device", "cpu", "--case", "*"], "there are: none"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        main.main(arguments)


def test_without_a_device_there_is_nothing_to_measure() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(SystemExit, match="needs a CUDA device"):
        main.main(["run", "exact_cuda", "--case", "small"])


def test_the_list_names_every_case_and_its_bars(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["list"]) == 0
    listed = capsys.readouterr().out
    for name in main.NAMES:
        assert f"\n{name}\n" in f"\n{listed}"
    for name in ("graph-sift-f32", "graph-10m", "auto-uniform-d15", "curve-gaussian", "bars-8192x1024-k10", "table-I"):
        assert f"\n{name} " in listed
    assert "recall@10 >= 0.99, memory <= 1, seconds <= 0.35" in listed
    assert "times faster >= 6 (amx), times faster >= 3 (avx512), times faster >= 3" not in listed
    assert main.main(["list", "kdtree", "--device", "cuda", "--case", "graph-*"]) == 0
    title, _, case, _ = capsys.readouterr().out.splitlines()
    assert title == "kdtree"
    assert case.split()[0] == "graph-d3"
    assert "seconds <= 0.015" in case


def test_each_instruction_set_runs_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def started(arguments: list[str], **_: Any) -> Any:
        commands.append(arguments[3:])
        return SimpleNamespace(returncode=len(commands) - 1)

    monkeypatch.setattr(command.subprocess, "run", started)
    given = ["run", "exact_cpu", "--isa", "amx", "--case", "l1", "--isa=avx2", "--no-csv"]
    assert main.main(given) == 1
    assert commands == [
        ["run", "exact_cpu", "--case", "l1", "--no-csv", "--isa", "amx"],
        ["run", "exact_cpu", "--case", "l1", "--no-csv", "--isa", "avx2"],
    ]


def test_one_fault_does_not_end_a_run() -> None:
    opened = a_run()
    run.run_cases(opened, [a_case(work=fail(KeyError("gone"))), a_case(name="next", work=lambda run, case: None)])
    assert opened.wrong == 1
    assert "KeyError" in notes(opened)
