"""Tiles of the tests of selection on a device."""

from __future__ import annotations

import pytest

from tonari.select import tuning
from tonari.select.papers import quick


@pytest.fixture
def small_tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use tiles that rows of a few hundred values fill several times; on a GPU, keep the usual ones."""
    if "gpu" in request.keywords:
        return
    monkeypatch.setattr(tuning, "BITONIC_TILE", 64)
    monkeypatch.setattr(quick, "TILES", {"warp": (128, 1), "block": (512, 2)})
    monkeypatch.setattr(tuning, "BUILD_TILE", 256)
    monkeypatch.setattr(tuning, "BUILD_WIDTH", 64)
