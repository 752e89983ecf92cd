"""All tests in this folder have the mark `bench`: they test the benchmarks, which are not installed."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    is_here = functools.cache(lambda path: HERE in path.parents)
    for item in items:
        if is_here(item.path):
            item.add_marker(pytest.mark.bench)
