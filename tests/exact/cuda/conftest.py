"""What several tests of exact search on CUDA change."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_TORCH


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are searched again on every level, however few they are."""
    if HAS_TORCH:
        from tonari.exact.cuda.attempts import first

        monkeypatch.setattr(first, "OF_ATTEMPT", -1)
