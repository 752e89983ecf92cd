"""A campaign ends whole parts only, goes on where it ended, and keeps commits, machines and options apart."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.harness import campaign, rows
from benchmarks.harness.case import Suite
from tests.helpers.bench_checks import a_case

ROW = {"date": "2026-11-28T02:00Z", "commit": "abc", "who": "tonari", "device": "cpu", "machine": "a machine"}


def options(to: Path, **changes: Any) -> Any:
    defaults = {"device": "cpu", "turns": 1, "budget": 1e9, "part": 540.0, "threads": 2, "scale": 1.0}
    return SimpleNamespace(**defaults | {"to": to, "list": False, "collect": False} | changes)


class Measured:
    """Replaces the processes of parts: writes one row for each, with the note that is due."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        self.notes: dict[str, str] = {}
        self.status: dict[str, int] = {}
        self.machine = "a machine"
        monkeypatch.setattr(campaign.subprocess, "run", self.run)
        monkeypatch.setattr(campaign.machine, "commit", lambda: "abc")

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        after = dict(itertools.pairwise(command))
        case = after["--case"]
        row = ROW | {"suite": command[4], "case": case, "note": self.notes.get(case, ""), "machine": self.machine}
        rows.append(Path(after["--csv"]), [row | {"passed": False, "seconds_median": 1.0}])
        return subprocess.CompletedProcess(command, self.status.get(case, 0))

    @property
    def cases(self) -> list[str]:
        return [dict(itertools.pairwise(one))["--case"] for one in self.commands]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    return Measured(monkeypatch)


def a_suite(results: str = "tests") -> Suite:
    cases = (
        a_case(name="short", cost=10.0),
        a_case(name="long", cost=100.0),
        a_case(name="rare", rare=True),
        a_case(name="card", device="cuda"),
    )
    return Suite("tests", results, cases, ())


def test_all_cases_of_a_device_are_measured_once_per_turn(measured: Measured, tmp_path: Path) -> None:
    assert campaign.campaign([a_suite()], options(tmp_path, turns=2)) == 0
    assert measured.cases == ["short", "long", "short", "long"]
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        f"tests.{name}.{turn}.csv" for name in ("long", "short") for turn in (1, 2)
    ]


def test_a_later_call_measures_what_is_left(measured: Measured, tmp_path: Path) -> None:
    assert campaign.campaign([a_suite()], options(tmp_path, budget=50.0)) == 1
    assert measured.cases == ["short"]  # the other one would take 100 s
    measured.notes["long"] = "not reached"
    assert campaign.campaign([a_suite()], options(tmp_path)) == 1
    measured.notes.clear()
    assert campaign.campaign([a_suite()], options(tmp_path)) == 0
    assert measured.cases == ["short", "long", "long"]
    assert campaign.campaign([a_suite()], options(tmp_path)) == 0
    assert len(measured.commands) == 3


def test_a_case_that_is_longer_than_a_part_is_named(
    measured: Measured, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert campaign.campaign([a_suite()], options(tmp_path, part=50.0)) == 1
    assert "tests.long.1: needs --part 100" in capfd.readouterr().err
    assert measured.cases == ["short"]


def test_a_wrong_answer_keeps_its_rows_and_changes_the_status(
    measured: Measured, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    measured.status["long"] = 1
    assert campaign.campaign([a_suite()], options(tmp_path)) == 1
    assert "2 measured, 0 left, 1 wrong or failed" in capfd.readouterr().out


def test_a_crash_is_measured_again(measured: Measured, tmp_path: Path) -> None:
    measured.status["long"] = -11
    assert campaign.campaign([a_suite()], options(tmp_path)) == 1
    assert not (tmp_path / "parts" / "tests.long.1.csv").exists()
    measured.status.clear()
    assert campaign.campaign([a_suite()], options(tmp_path)) == 0


def test_a_process_beyond_its_time_is_ended(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def late(command: list[str], timeout: float, **_: Any) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(campaign.subprocess, "run", late)
    assert campaign.campaign([a_suite()], options(tmp_path)) == 1
    assert "tests.short.1: too long" in capfd.readouterr().err


@pytest.mark.parametrize("commit", ["abc+", "unknown"])
def test_a_tree_with_changes_is_refused(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, commit: str
) -> None:
    monkeypatch.setattr(campaign.machine, "commit", lambda: commit)
    with pytest.raises(SystemExit, match="expected one without changes"):
        campaign.campaign([a_suite()], options(tmp_path))
    assert not measured.commands


def test_a_folder_has_one_commit_one_machine_and_the_same_options(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    campaign.campaign([a_suite()], options(tmp_path, budget=50.0))
    with pytest.raises(SystemExit, match="says threads 2, but it is 4 now"):
        campaign.campaign([a_suite()], options(tmp_path, threads=4))
    measured.machine = "another machine"
    with pytest.raises(SystemExit, match="says machine a machine, but it is another machine now"):
        campaign.campaign([a_suite()], options(tmp_path))
    monkeypatch.setattr(campaign.machine, "commit", lambda: "def")
    with pytest.raises(SystemExit, match="says commit abc, but it is def now"):
        campaign.campaign([a_suite()], options(tmp_path))
    assert json.loads((tmp_path / "campaign.json").read_text())["machine"] == "a machine"


def test_rows_are_collected_once(measured: Measured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results = tmp_path / "results.csv"
    monkeypatch.setattr(Suite, "path", results)
    campaign.campaign([a_suite()], options(tmp_path / "to"))
    for _ in range(2):
        campaign.campaign([a_suite()], options(tmp_path / "to", collect=True))
        assert [(row["case"], row["passed"]) for row in rows.read(results)] == [("short", False), ("long", False)]


def test_a_list_measures_nothing(measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign.campaign([a_suite()], options(tmp_path, list=True))
    assert capsys.readouterr().out == "tests.short.1  10 s\ntests.long.1  100 s\n"
    assert not measured.commands
