"""A limit to the time of a run, after which no further test starts; what was not run is told at the end.

    make test-rest PYTEST='-n 2 --max-seconds 300'

Files run in an order that is drawn anew for each run. So the tests that are not run are not the same every time.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.helpers.durations import file_of


def in_drawn_order(items: list[pytest.Item], seed: str) -> None:
    """Draw the order of the files of tests, the same in all processes of a run; the order within a file stays."""
    files = sorted({file_of(item.nodeid) for item in items})
    place = {file: at for at, file in enumerate(random.Random(seed).sample(files, len(files)))}
    items.sort(key=lambda item: place[file_of(item.nodeid)])


class Limit:
    """Passes over tests when the time is over, and counts them by their folders, those of other processes included."""

    def __init__(self, config: pytest.Config, seconds: float) -> None:
        self.config, self.seconds = config, seconds
        self.end = time.monotonic() + seconds
        self.passed_over: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Return True, which ends the hook, instead of running a test after the end."""
        if time.monotonic() < self.end:
            return None
        self.passed_over[str(PurePosixPath(file_of(item.nodeid)).parent)] += 1
        return True

    def pytest_sessionfinish(self) -> None:
        """Tell the process that started this one what was passed over."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["passed_over"] = dict(self.passed_over)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add up what another process passed over."""
        self.passed_over.update(getattr(node, "workeroutput", {}).get("passed_over", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which tests were not run."""
        if self.passed_over:
            count, told = self.passed_over.total(), sorted(self.passed_over.items())
            where = ", ".join(f"{number:,} in {folder}" for folder, number in told)
            terminalreporter.write_line(f"{self.seconds:g} s were over: {count:,} tests were NOT run: {where}")


def configure(config: pytest.Config) -> None:
    """Register the limit if there is one."""
    seconds = config.getoption("--max-seconds")
    if seconds is not None:
        config.pluginmanager.register(Limit(config, seconds))
