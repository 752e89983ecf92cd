"""Fixtures that several tests of exact search on CUDA use."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_TORCH
from tonari.exact.cuda import tuning


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search rows again on every level, however few they are."""
    if HAS_TORCH:
        monkeypatch.setattr(tuning, "OF_ATTEMPT", -1)
