"""The record of durations: its files exist, the longest start first, and only complete runs are recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import durations

ROOT = Path(__file__).parents[2]


class Named:
    """A test that has only a name."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def test_recorded_files_are_there() -> None:
    seconds = durations.recorded()
    assert [name for name in seconds if not (ROOT / name).is_file()] == []
    assert all(each >= 0 for each in seconds.values())


def test_long_files_begin_first_and_unknown_ones_before_them() -> None:
    items: list[Any] = [Named(f"{file}.py::{test}") for file in ("short", "new", "long") for test in ("b", "a[x::y]")]
    durations.longest_first(items, {"short.py": 0.5, "long.py": 70.0})
    expected = [f"{file}.py::{test}" for file in ("new", "long", "short") for test in ("b", "a[x::y]")]
    assert [item.nodeid for item in items] == expected


def test_a_file_takes_what_all_phases_of_its_tests_take(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "durations.json"
    path.write_text(json.dumps({"tests/conftest.py": 3.0, "tests/gone.py": 5.0, "tests/test_docs.py": 8.0}))
    recorder = durations.Recorder(path)
    for nodeid, seconds in (
        ("tests/test_docs.py::a", 1.0),
        ("tests/test_docs.py::b[1]", 0.52),
        ("tests/test_bare.py::c", 2),
    ):
        report: Any = Named(nodeid)
        report.duration = seconds
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish(request.session, pytest.ExitCode.TESTS_FAILED)
    assert "tests/gone.py" in durations.recorded(path)  # a run that failed may have ended early
    recorder.pytest_sessionfinish(request.session, pytest.ExitCode.OK)
    expected = {"tests/conftest.py": 3.0, "tests/test_bare.py": 2.0, "tests/test_docs.py": 1.5}
    assert list(durations.recorded(path).items()) == list(expected.items())


def test_without_a_record_there_are_no_durations(tmp_path: Path) -> None:
    assert durations.recorded(tmp_path / "nothing.json") == {}


class Asked:
    """A pytest configuration that has only a command line."""

    def __init__(self, *args: str, **options: Any) -> None:
        self.args, self.options = args, {"--record-durations": True} | options
        self.registered: list[Any] = []
        self.pluginmanager = self

    def getoption(self, name: str, default: Any = None) -> Any:
        return self.options.get(name, default)

    def register(self, plugin: Any) -> None:
        self.registered.append(plugin)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Asked("tests", keyword="cut"), "-k"),
        (Asked("tests", maxfail=1), "--maxfail"),
        (Asked("tests", lf=True), "--last-failed"),
        (Asked("tests/a.py::test_b"), "tests/a.py::test_b"),
    ],
)
def test_a_part_of_a_file_is_not_recorded(asked: Any, what: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"--record-durations: is of whole files; leave out {what}"):
        durations.configure(asked)


def test_one_process_records_if_that_is_asked_for(pytestconfig: pytest.Config) -> None:
    alone, worker, silent = Asked("tests"), Asked("tests"), Asked("tests", **{"--record-durations": False})
    worker.workerinput = {}  # type: ignore[attr-defined]
    for asked in (alone, worker, silent):
        durations.configure(asked)  # type: ignore[arg-type]
    assert [len(asked.registered) for asked in (alone, worker, silent)] == [1, 0, 0]
    assert {"keyword", "maxfail"} <= set(vars(pytestconfig.option))  # the names that pytest uses
