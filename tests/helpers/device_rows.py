"""Small data on a CUDA device, or on the CPU in its place, where tensors count as on the device and arrays do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers import checks
from tests.helpers.devices import HAS_CUDA
from tests.helpers.gpu_checks import tensor_of
from tonari.core.results.neighbors import Neighbors

DEVICE = "cuda" if HAS_CUDA else "cpu"


def there(x: Any) -> Any:
    """Return an array as a tensor on the device."""
    return tensor_of(x).to(DEVICE)


def here(found: Neighbors) -> Neighbors:
    """Check that neighbours are tensors on the device, and return them as NumPy arrays."""
    for part in found:
        assert part.device.type == DEVICE
    return Neighbors(*(part.cpu().numpy() for part in found))


N, D, K = 45, 17, 4


def rows(n: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Make rows of a dtype without negative numbers."""
    scale = 30 if dtype in ("uint8", "int8") else 1
    return np.abs(checks.gaussian(n, D, seed) * scale).astype(dtype)
