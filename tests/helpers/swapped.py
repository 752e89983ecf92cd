"""A pytest plugin that replaces scikit-learn's estimators by tonari's, and writes the tests' outcomes to a file.

The environment variable OUTCOMES names the file: a JSON object with the outcomes of each test, by its name without
parameters. An outcome is "passed", "skipped" or the text of the exception.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import sklearn.cluster._dbscan
import sklearn.impute
import sklearn.neighbors

from tonari import estimators

HOMES = {"DBSCAN": (sklearn.cluster, sklearn.cluster._dbscan), "KNNImputer": (sklearn.impute,)}
_outcomes: dict[str, list[str]] = {}


def pytest_configure(config: pytest.Config) -> None:
    """Replace scikit-learn's classes by tonari's wherever tests, and scikit-learn's function `dbscan`, look them up."""
    for name in estimators.__all__:
        for module in HOMES.get(name, (sklearn.neighbors,)):
            setattr(module, name, getattr(estimators, name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Record the outcome of a test."""
    report = yield
    if report.when == "call" or report.failed:
        text = "" if call.excinfo is None else str(call.excinfo.value)
        outcome = f"{call.excinfo.typename}: {text}" if report.failed and call.excinfo else report.outcome
        _outcomes.setdefault(item.name.partition("[")[0], []).append(outcome)
    return report


def pytest_sessionfinish() -> None:
    """Write all outcomes."""
    Path(os.environ["OUTCOMES"]).write_text(json.dumps(_outcomes), encoding="utf-8")
