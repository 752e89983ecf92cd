"""Steps of queries whose lengths follow their times."""

from __future__ import annotations

import pytest

from tests.helpers.devices import HAS_CUDA, HAS_TORCH, needs_torch

if HAS_TORCH:
    from tonari.kdtree.cuda.steps import Steps

pytestmark = [needs_torch, *([pytest.mark.gpu] if HAS_CUDA else [])]


def test_steps_grow_by_what_was_fast() -> None:
    steps, sizes = Steps("cpu"), []
    for _ in range(6):
        sizes.append(steps.size)
        with steps.launching(steps.size):
            pass
    assert sizes == [1 << 12, 1 << 12, 1 << 13, 1 << 13, 1 << 14, 1 << 14]
    with steps.launching(10):
        pass
    with steps.launching(10):
        pass
    assert steps.size == 1 << 15  # few queries tell nothing about many
