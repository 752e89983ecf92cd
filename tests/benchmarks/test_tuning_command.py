"""``python -m benchmarks tune``: every tuned number names its measurement, and values are tried and restored."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tonari
from benchmarks.__main__ import ROOMS, build_parser, load
from benchmarks.harness import tuning
from benchmarks.harness.case import Case, Suite
from benchmarks.harness.machine import ROOT
from tests.helpers.bench_checks import Still, a_case, a_run
from tonari.exact import tuning as exact_tuning
from tonari.methods import answer, call, repeated

TEXT = '''"""Judgments."""

from tonari.core.units import MIB

# Case: kdtree tiny, other on cpu. Chosen on: an EPYC.
# More is said here.
LEAF = 64  # points of a leaf [32, 64, 1 << 7]
BY = {3: 16}
BY[4] = 5

# Not measured: a bound.
MOST = 2 * MIB  # bytes
'''


def test_constants_say_by_what_they_were_chosen() -> None:
    shared: dict[str, Any] = {"suite": "kdtree", "cases": ("tiny", "other"), "device": "cpu", "machines": "an EPYC"}
    assert tuning.entries(TEXT) == [
        tuning.Entry("LEAF", "points of a leaf", values=(32, 64, 128), **shared),
        tuning.Entry("BY", "", **shared),
        tuning.Entry("MOST", "bytes"),
    ]


@pytest.mark.parametrize("said", ["", "# Chosen well.\n", "# Case: kdtree tiny. Chosen on: an EPYC.\n"])
def test_a_group_that_says_nothing_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match=r"LEAF: the group above says .*, expected 'Case: SUITE CASE on DEVICE"):
        tuning.entries(f"{said}LEAF = 64\n")


@pytest.mark.parametrize("room", ROOMS)
def test_cases_of_judgments_exist_and_values_include_the_present_one(room: str) -> None:
    path = ROOT / "src" / "tonari" / room / "tuning.py"
    module: dict[str, Any] = {}
    exec(path.read_text(), module)
    found = tuning.entries(path.read_text())
    assert {name for name in module if name.isupper() and name != "MIB"} == {entry.name for entry in found}
    for entry in found:
        if entry.cases:
            suite = load(entry.suite)
            assert set(entry.cases) <= {case.name for case in suite.cases if case.device == entry.device}, entry.name
            assert not entry.values or (module[entry.name] in entry.values and suite.workload is not None), entry.name


# --- trying values -----------------------------------------------------------------------------------------------


class Clock(Still):
    """A device whose calls take the seconds that they add to its clock."""

    seconds = 0.0

    def once(self, call: Callable[[], object]) -> float:
        self.seconds = 0.0
        call()
        return self.seconds


@pytest.fixture
def room() -> ModuleType:
    module = ModuleType("tonari.made.tuning")
    module.__dict__["LEAF"] = 64
    return module


def made_suite(room: ModuleType, clock: Clock, fail: BaseException | None = None) -> Suite:
    """Make a suite whose time grows with the distance of LEAF from 32, and whose lists differ at 128."""

    def workload(run: Any, case: Case) -> Callable[[], Any]:
        def call() -> Any:
            if fail is not None and room.LEAF == 128:
                raise fail
            clock.seconds += 1.5 + abs(room.LEAF - 32)
            return argparse.Namespace(indices=np.full(3, room.LEAF == 128))

        return call

    return Suite("made", "made", (replace(a_case(), name="tiny"),), (), workload=workload)


ENTRY = tuning.Entry("LEAF", "points of a leaf", "made", ("tiny",), "cpu", "an EPYC", (32, 64, 128))


def test_each_value_is_timed_and_the_present_one_set_back(room: ModuleType) -> None:
    clock = Clock()
    suite = made_suite(room, clock)
    present, faster, slower = tuning.measure(room, ENTRY, a_run(device=clock), suite, suite.cases[0], 3)
    assert room.LEAF == 64
    assert (present.value, faster.value, slower.value) == (64, 32, 128)
    assert present.rounds.ours == (33.5, 33.5, 33.5)
    assert faster.rounds.ratio == pytest.approx(1.5 / 33.5)
    assert (faster.better, present.better, slower.better) == (True, False, False)
    assert (faster.same, slower.same) == (True, False)


@pytest.mark.parametrize("fault", [RuntimeError("no"), KeyboardInterrupt()])
def test_the_present_value_is_set_back_where_work_fails(room: ModuleType, fault: BaseException) -> None:
    clock = Clock()
    suite = made_suite(room, clock, fault)
    with pytest.raises(type(fault)):
        tuning.measure(room, ENTRY, a_run(device=clock), suite, suite.cases[0], 3)
    assert room.LEAF == 64


TINY_TEXT = """# Case: made tiny on cpu. Chosen on: an EPYC.
LEAF = 64  # points of a leaf [32, 64, 128]

# Case: made tiny on cuda. Chosen on: an H100.
ON_A_CARD = 3  # [2, 3]

# Not measured.
MOST = 5
"""


@pytest.mark.parametrize("fault", [None, KeyboardInterrupt(), RuntimeError("no photographs")])
def test_the_command_says_what_it_would_change(
    room: ModuleType,
    fault: BaseException | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "tuning.py"
    path.write_text(TINY_TEXT)
    room.__file__ = str(path)
    monkeypatch.setattr(tuning.importlib, "import_module", lambda name: room)
    clock = Clock()
    options = build_parser().parse_args(["tune", "kdtree", "--scale", "1", "--repeats", "3"])
    suite = made_suite(room, clock, fault)
    status = tuning.tune(options, lambda name: suite, lambda suite: a_run(device=clock))
    shown = capsys.readouterr().out
    assert room.LEAF == 64
    if isinstance(fault, RuntimeError):
        assert status == 1
        assert "  tiny: FAILED: RuntimeError: no photographs\n" in shown
        return
    if fault is not None:
        assert status == 130
        assert shown.endswith("interrupted: entries from here on were not measured\n0 changes of kdtree/tuning.py\n")
        return
    assert status == 0
    assert "LEAF = 64: points of a leaf" in shown
    assert "ON_A_CARD: needs a card: --device cuda" in shown
    assert "MOST: no case measures it" in shown
    took = "tiny in 0.045 of the time, and 0.045 when measured again"
    assert shown.endswith(f"1 changes of kdtree/tuning.py:\n  LEAF = 32, now 64: {took}\n")


def test_a_change_that_a_second_measurement_denies_is_not_named(
    room: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tuning.py"
    path.write_text(TINY_TEXT)
    room.__file__ = str(path)
    monkeypatch.setattr(tuning.importlib, "import_module", lambda name: room)
    clock, timed = Clock(), []

    def workload(run: Any, case: Case) -> Callable[[], Any]:
        def call() -> Any:
            timed.append(room.LEAF)
            disturbed = room.LEAF == 64 and len(timed) <= 12  # for each of three values: lists, and three rounds
            clock.seconds += 9.0 if disturbed else 3.0
            return argparse.Namespace(indices=np.zeros(3))

        return call

    suite = replace(made_suite(room, clock), workload=workload)
    options = build_parser().parse_args(["tune", "kdtree", "--scale", "1", "--repeats", "3"])
    assert tuning.tune(options, lambda name: suite, lambda suite: a_run(device=clock)) == 0
    shown = capsys.readouterr().out
    assert "  32 took 1.000 of the time when measured again: no change\n" in shown
    assert shown.endswith("0 changes of kdtree/tuning.py\n")


def test_plans_of_other_values_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned() -> int:
        return int(tonari.plan(100_000, 10_000, 64, 10, method="exact", threads=1).query_block)

    first = planned()
    with monkeypatch.context() as patched:
        patched.setattr(exact_tuning, "QUERY_BLOCK", first // 2)
        assert planned() == first  # plans are cached
        tuning.forget()
        assert planned() == first // 2
    tuning.forget()
    assert planned() == first


def test_decisions_that_searches_left_are_forgotten() -> None:
    """Otherwise a repeated search would be timed with a plan for other values."""
    x = np.eye(4, dtype=np.float32)
    tonari.search(x, x[:3].copy(), 1)
    tonari.search(x, x[:3].copy(), 1)
    assert answer._kept
    assert call._calls
    assert repeated._kept
    tuning.forget()
    assert not answer._kept
    assert not call._calls
    assert not repeated._kept
