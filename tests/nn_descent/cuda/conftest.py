"""The plain search in the place of the exact engine."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_CUDA


@pytest.fixture
def plain_exact_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a card, the plain search answers what the exact engine would: that has tests of its own."""
    if not HAS_CUDA:
        from tests.helpers import descent_on_cuda
        from tonari.nn_descent.cuda import backend

        monkeypatch.setattr(backend, "nearest", descent_on_cuda.plain_nearest)
