"""Kernels and routes give the values of the definition beyond the range of their type, too."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _values_beyond_the_range_are_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches return what the public functions refuse, so that it can be compared with the definition."""
    for module in ("filters.engine", "graph.build", "methods.answer", "methods.radius", "methods.repeated"):
        monkeypatch.setattr(f"tonari.{module}.check_range", lambda *found: None)
