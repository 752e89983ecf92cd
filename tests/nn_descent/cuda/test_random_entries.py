"""Random starts, with the bits of the host's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.gnnd import DEVICE
from tonari.nn_descent.entries import random_entries

if HAS_TORCH:
    import torch

    from tonari.nn_descent.cuda import backend as on_card
pytestmark = [needs_torch]


@pytest.mark.parametrize(("n", "size", "seed"), [(1, 3, 0), (7, 1, 2**32 - 1), (1000, 64, 5), (3, 9, 1)])
def test_the_random_start_has_the_bits_of_the_host(
    n: int, size: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_card, "_BLOCK", 300 * size)
    drawn = on_card.random_on(torch.device(DEVICE), n, size, seed)
    np.testing.assert_array_equal(drawn.cpu().numpy(), random_entries(n, size, seed))
