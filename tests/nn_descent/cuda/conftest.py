"""The plain search in place of exact search."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_CUDA


@pytest.fixture
def plain_exact_neighbors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU, let the plain search answer instead of exact search, which has its own tests."""
    if not HAS_CUDA:
        from tests.helpers import descent_on_cuda
        from tonari.nn_descent.cuda import backend

        monkeypatch.setattr(backend, "nearest", descent_on_cuda.plain_nearest)
