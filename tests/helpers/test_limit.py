"""The limit to the time of a run: no test starts after it, and what was not run is counted in all processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import limit


def named(*nodeids: str) -> list[Any]:
    return [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]


def test_files_are_drawn_and_tests_of_a_file_stay_in_order() -> None:
    nodeids = [f"tests/{file}.py::{test}" for file in "abcdefgh" for test in ("z", "y[b::c]")]
    drawn = []
    for seed in ("one", "another"):
        items, again = named(*nodeids), named(*reversed(nodeids))
        limit.in_drawn_order(items, seed)
        limit.in_drawn_order(again, seed)
        drawn.append([item.nodeid for item in items])
        assert sorted(drawn[-1]) == sorted(nodeids)
        assert [nodeid.partition("::")[2] for nodeid in drawn[-1]] == ["z", "y[b::c]"] * 8
        files = [item.nodeid.partition("::")[0] for item in again]
        assert files == [nodeid.partition("::")[0] for nodeid in drawn[-1]]  # however they were collected
    assert drawn[0] != drawn[1]


class Written:
    """A terminal that keeps lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, line: str) -> None:
        self.lines.append(line)


def test_no_test_starts_after_the_end_and_what_was_passed_over_is_told() -> None:
    worker, alone, written = SimpleNamespace(workeroutput={}), SimpleNamespace(), Written()
    of_worker, of_run = limit.Limit(worker, -1.0), limit.Limit(alone, 3600.0)  # type: ignore[arg-type]
    items = named("tests/a/test_b.py::one", "tests/a/test_b.py::two[x]", "tests/a/c/test_d.py::three")
    assert [of_run.pytest_runtest_protocol(item) for item in items] == [None] * 3
    assert [of_worker.pytest_runtest_protocol(item) for item in items] == [True] * 3
    of_run.pytest_terminal_summary(written)  # type: ignore[arg-type]
    assert written.lines == []
    for each in (of_worker, of_run):
        each.pytest_sessionfinish()
    for _ in range(2):
        of_run.pytest_testnodedown(worker)
    of_run.pytest_terminal_summary(written)  # type: ignore[arg-type]
    assert written.lines == ["3600 s were over: 6 tests were NOT run: 4 in tests/a, 2 in tests/a/c"]


@pytest.mark.parametrize(("seconds", "count"), [(None, 0), (7.0, 1)])
def test_a_limit_is_registered_if_it_is_given(seconds: float | None, count: int) -> None:
    registered: list[Any] = []
    config: Any = SimpleNamespace(
        getoption={"--max-seconds": seconds}.__getitem__, pluginmanager=SimpleNamespace(register=registered.append)
    )
    limit.configure(config)
    assert [each.seconds for each in registered] == [seconds] * count
