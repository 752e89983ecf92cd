"""What several tests of exact search on CUDA change."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_TORCH
from tonari.exact.cuda import tuning


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are searched again on every level, however few they are."""
    if HAS_TORCH:
        monkeypatch.setattr(tuning, "OF_ATTEMPT", -1)
