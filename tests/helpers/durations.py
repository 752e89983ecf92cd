"""The recorded seconds of each test file, by which the longest files start first if several processes share the tests.

    make test PYTEST='-n 2 --record-durations'      writes the files that ran to tests/durations.json

At the end of a run, processes take tests from each other (pytest-xdist's worksteal), so the last files should be short.
A file without a record starts first, because its duration is unknown.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

RECORD = Path(__file__).parents[1] / "durations.json"


def recorded(path: Path = RECORD) -> dict[str, float]:
    """Return the seconds of each test file, by its path from the root of the repository."""
    seconds: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return seconds


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def longest_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Order tests by the seconds of their files, the longest first; the order within a file stays the same."""
    items.sort(key=lambda item: -seconds.get(file_of(item.nodeid), math.inf))


class Recorder:
    """Adds up the seconds of the tests of each file, and writes them at the end of a run that passed."""

    def __init__(self, path: Path = RECORD) -> None:
        self.path = path
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of the setup, the call or the teardown of a test, which ran in any process."""
        self.seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Record the files that ran, and remove files that no longer exist."""
        if exitstatus != pytest.ExitCode.OK:
            return
        root = session.config.rootpath
        known = {name: each for name, each in recorded(self.path).items() if (root / name).is_file()}
        known |= {name: round(each, 1) for name, each in self.seconds.items()}
        self.path.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n", encoding="utf-8")


def configure(config: pytest.Config) -> None:
    """Register the recorder if the run is recorded, and only in the process that receives the reports of all others."""
    if not config.getoption("--record-durations"):
        return
    parts = {"keyword": "-k", "lf": "--last-failed", "maxfail": "--maxfail"}
    given = [option for name, option in parts.items() if config.getoption(name, default=None)]
    given += [argument for argument in config.args if "::" in argument]
    if given:
        raise pytest.UsageError(f"--record-durations: is of whole files; leave out {' '.join(given)}")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
